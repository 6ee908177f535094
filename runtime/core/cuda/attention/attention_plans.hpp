// SPDX-License-Identifier: Apache-2.0
// Attention by cuDNN. Plans are made once per shape, when it first appears, in the eager run before capture.
// A build without cuDNN has the same functions and none of the kernels (attention_without_cudnn.cpp).
#pragma once
#include "attention_fused.hpp"

namespace rankc::runtime::cuda {

/// Room for the plans of a rank, with no plan in it.
attention_plans* make_attention_plans();
void destroy(attention_plans*);

/// Enqueue attention, or its gradient. False where cuDNN cannot do it: then nothing was enqueued.
/// Errors: failure (70) where every plan of cuDNN's needs more scratch than was planned.
bool attention_cudnn(const lane&, at o, at lse, at scratch, at q, at k, at v, const attention_sizes&);
bool attention_grad_cudnn(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                          at lse, const attention_sizes&);
/// Whether cuDNN has a plan for either that keeps to the scratch.
bool has_attention_plan(const lane&, bool gradient, const attention_sizes&);

}  // namespace rankc::runtime::cuda
