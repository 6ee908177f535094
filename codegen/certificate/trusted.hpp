// SPDX-License-Identifier: Apache-2.0
// Every certificate has these sentences under "trusted": no checker can verify them from the file.
#pragma once
#include <string_view>

namespace rankc::codegen {

inline constexpr std::string_view trusted[]{
    "each op reads and writes the bytes that it names and no others, and may write over the reads that it "
    "names",
    "the table of facts (codegen/equivalence/facts.cpp) is true of the kernels, and collectives do what "
    "their names say",
    "the model is the one that the plan's author means, as it was traced on one device",
    "a program with the file's fingerprint of calls makes the calls of the file",
    "the sizes of its op that the call of a user's kernel names (\"given\") are those that the kernel takes, "
    "in its "
    "order",
    "where the file lists some ranks of a larger world, every other rank does what the listed ranks at its "
    "coordinates do",
    "memory outside the arena (workspaces of cuBLASLt and cuDNN, buffers of NCCL, staged scalars) is never "
    "used by two ops that run at once",
    "lanes progress independently: no kernel that waits for another rank keeps a kernel of another lane from "
    "starting",
    "the protocols of devices: events, copies between peers, and collectives that read the arena of a peer",
    "the loader puts weights, moments, ids, targets, starts of documents and the inputs that the model "
    "declares "
    "into the bytes that a step begins with",
    "the optimizer's formula and its scalars (learning rate, decay, momentum, clip, number of the step)",
    "rounding, and the types that kernels sum in",
};

}  // namespace rankc::codegen
