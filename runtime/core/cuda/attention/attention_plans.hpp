// SPDX-License-Identifier: Apache-2.0
// Attention by cuDNN. A plan is made once per shape, when the shape first appears, in the eager run before
// graph capture. A build without cuDNN has the same functions without kernels (attention_without_cudnn.cpp).
#pragma once
#include "attention_fused.hpp"

namespace rankc::runtime::cuda {

/// Creates the list of a rank's plans, which is empty.
attention_plans* make_attention_plans();
void destroy(attention_plans*);

/// Enqueues attention, or its gradient. Returns false, and enqueues nothing, if cuDNN does not support the
/// call.
/// Errors: failure (70) if every plan of cuDNN needs more scratch than was planned.
bool attention_cudnn(const lane&, at o, at lse, at scratch, at q, at k, at v, const attention_sizes&);
bool attention_grad_cudnn(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                          at lse, const attention_sizes&);
/// True if cuDNN has a plan for attention, or its gradient, that fits into the planned scratch.
bool has_attention_plan(const lane&, bool gradient, const attention_sizes&);

}  // namespace rankc::runtime::cuda
