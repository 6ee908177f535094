// SPDX-License-Identifier: Apache-2.0
// Every library call of the CUDA runtime goes through one of these: an error becomes a failure (70) that
// names rank, step and action, then the call and the library's own text.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <chrono>
#include <string>

namespace rankc::runtime::cuda {

/// How long a call of NCCL may take until the other ranks of its communicator have answered.
inline constexpr std::chrono::seconds nccl_patience{60};

/// Refuses tables that this target cannot run. Errors: failure (1).
void check(const program&);

/// Throw failure (70): "rank 2, step 17, B0: " and `what`.
[[noreturn]] void fail(const rank&, const std::string& what);

void check(const rank&, cudaError_t, const char* call);
/// Communicators do not block: a call under way is waited for here, until it is done, has taken too long, or
/// another rank has failed.
void check(const rank&, ncclResult_t, ncclComm_t, const std::string& call);
void check(const rank&, cublasStatus_t, const char* call);

/// What CUDA says of the calling thread's device.
int device_attribute(const rank&, cudaDeviceAttr);

}  // namespace rankc::runtime::cuda
