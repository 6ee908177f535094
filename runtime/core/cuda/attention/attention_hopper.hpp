// SPDX-License-Identifier: Apache-2.0
// Attention in bf16 on the tensor cores of compute capability 9.0, and its gradient. Every run gives the same
// bits.
#pragma once
#include "attention_fused.hpp"

namespace rankc::runtime::cuda {

/// Whether the plain kernels take a call of aligned operands: the GPU, attention_by_tiles or
/// attention_grad_by_tiles, and tokens in multiples of 64.
bool is_for_hopper(const lane&, bool gradient, const attention_sizes&);

/// Enqueue plain attention or its gradient. False where the kernels do not take the call, or an address is no
/// multiple of 16 bytes: then nothing was enqueued.
/// Shapes: scratch: attention_statistics_bytes.
bool attention_hopper(const lane&, at o, at lse, at q, at k, at v, const attention_sizes&);
bool attention_grad_hopper(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                           at lse, const attention_sizes&);

/// The queries and keys of causal attention within documents or windows: the queries of a rank's chunks or of
/// whole sequences (one rank), and the keys of all ranks, `gathered`, or of one rank of a ring.
/// Shapes: starts (rows, seq), or null without documents.
struct masked_layout {
  const std::int32_t* starts;
  runtime::chunks queries, keys;
  bool gathered;
};

/// Enqueue attention or its gradient with masks, of heads of 64 or 128. False where the kernels do not take
/// the call: then nothing was enqueued.
/// Shapes: scratch: attention_statistics_bytes.
bool masked_attention_hopper(const lane&, at o, at lse, at q, at k, at v, const masked_layout&,
                             const attention_sizes&, const attention_setting&);
bool masked_attention_grad_hopper(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v,
                                  at o, at lse, const masked_layout&, const attention_sizes&,
                                  const attention_setting&);

}  // namespace rankc::runtime::cuda
