// SPDX-License-Identifier: Apache-2.0
// Attention in bf16 on the tensor cores of compute capability 9.0, of heads of 64 elements, and its gradient.
// Every run gives the same bits.
#pragma once
#include "attention_fused.hpp"

namespace rankc::runtime::cuda {

/// Whether these kernels are for a call of aligned operands: the GPU, attention_by_tiles or
/// attention_grad_by_tiles, and tokens in multiples of 64.
bool is_for_hopper(const lane&, bool gradient, const attention_sizes&);

/// Enqueue either. False where they are not, or an address is no multiple of 16 bytes: then nothing was
/// enqueued.
/// Shapes: scratch: attention_statistics_bytes.
bool attention_hopper(const lane&, at o, at lse, at q, at k, at v, const attention_sizes&);
bool attention_grad_hopper(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                           at lse, const attention_sizes&);

}  // namespace rankc::runtime::cuda
