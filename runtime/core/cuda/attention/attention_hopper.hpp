// SPDX-License-Identifier: Apache-2.0
// Attention in bf16 on the tensor cores of compute capability 9.0, and its gradient. Every run gives the same
// bits.
#pragma once
#include "attention_fused.hpp"

namespace rankc::runtime::cuda {

/// True if the kernels without masks take a call, given aligned operands. They need a Hopper GPU, a shape of
/// attention_by_tiles or attention_grad_by_tiles, and multiples of 64 tokens.
bool is_for_hopper(const lane&, bool gradient, const attention_sizes&);

/// Enqueues attention without masks, or its gradient. Returns false, and enqueues nothing, if the kernels do
/// not take the call, or if an address is no multiple of 16 bytes.
/// Shapes: scratch: attention_statistics_bytes.
bool attention_hopper(const lane&, at o, at lse, at q, at k, at v, const attention_sizes&);
bool attention_grad_hopper(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                           at lse, const attention_sizes&);

/// The queries and keys of causal attention within documents or windows. The queries are a rank's chunks, or
/// whole sequences (one rank). The keys are those of all ranks, if `gathered`, or of one rank of a ring.
/// Shapes: starts (rows, seq), or null without documents.
struct masked_layout {
  const std::int32_t* starts;
  runtime::chunks queries, keys;
  bool gathered;
};

/// Enqueues attention with masks, or its gradient, for heads of 64 or 128 elements. Returns false, and
/// enqueues nothing, if the kernels do not take the call.
/// Shapes: scratch: attention_statistics_bytes.
bool masked_attention_hopper(const lane&, at o, at lse, at q, at k, at v, const masked_layout&,
                             const attention_sizes&, const attention_setting&);
bool masked_attention_grad_hopper(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v,
                                  at o, at lse, const masked_layout&, const attention_sizes&,
                                  const attention_setting&);

}  // namespace rankc::runtime::cuda
