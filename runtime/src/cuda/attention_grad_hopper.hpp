// SPDX-License-Identifier: Apache-2.0
// The gradient of attention in bf16 on the tensor cores of compute capability 9.0, of heads of 64 elements. Every run
// gives the same bits.
#pragma once
#include "attention_plans.hpp"

namespace rankc::cuda {

/// Enqueue it. False where the GPU is another, attention_grad_by_tiles says no, tokens are no multiples of 64 or addresses
/// none of 16 bytes: then nothing was enqueued. Shapes: scratch: attention_statistics_bytes.
bool attention_grad_hopper(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o, at lse,
                           const attention_sizes&);

}  // namespace rankc::cuda
