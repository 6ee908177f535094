// SPDX-License-Identifier: Apache-2.0
// Attention in bf16 by fused kernels, for the shapes that attention_scratch.hpp names: rankc's own for
// Hopper, else cuDNN's.
#pragma once
#include <rankc/runtime/cuda/kernels.hpp>
#include <rankc/runtime/ring_step.hpp>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <initializer_list>

namespace rankc::runtime::cuda {

/// The sizes of a call to attention.
/// Units: strides in elements, from one token to the next. o and dout have o_stride.
struct attention_sizes {
  int rows, seq, heads, kv_heads, dim, value_dim, q_stride, k_stride, v_stride, o_stride;
  // The number of keys, all of which every query sees. 0: causal attention with as many keys as queries.
  int keys = 0;
  // Tokens from one row to the next, of queries and of keys. 0: the number of tokens in a row.
  int apart = 0;
  auto operator<=>(const attention_sizes&) const = default;
  bool is_causal() const { return keys == 0; }
  int n_keys() const { return keys == 0 ? seq : keys; }
  std::int64_t queries_apart() const { return apart == 0 ? seq : apart; }
  std::int64_t keys_apart() const { return apart == 0 ? n_keys() : apart; }
};

/// The value of `keys` for a call with as many keys as queries.
constexpr int keys_of(int seq, const attention_setting& by) { return by.causal ? 0 : seq; }

/// The sizes of a ring's step: as many keys as queries, and contiguous rows.
inline attention_sizes ring_sizes(int rows, int tokens, int heads, int kv_heads, int dim, int value_dim,
                                  int keys) {
  return {.rows = rows,
          .seq = tokens,
          .heads = heads,
          .kv_heads = kv_heads,
          .dim = dim,
          .value_dim = value_dim,
          .q_stride = heads * dim,
          .k_stride = kv_heads * dim,
          .v_stride = kv_heads * value_dim,
          .o_stride = heads * value_dim,
          .keys = keys};
}

/// The shape for which the generator planned the scratch of a call.
inline attention_shape shape_of(const lane& on, const attention_sizes& s) {
  return {.rows = s.rows,
          .seq = std::max(s.seq, s.n_keys()),
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .dim = s.dim,
          .value_dim = s.value_dim,
          .element = sizeof(bf16),
          .deterministic = on.of->about->deterministic};
}

/// True if fused kernels support the sizes of a call: keys and values have one head size and one stride.
inline bool may_be_fused(const attention_sizes& s) {
  return s.value_dim == s.dim && s.v_stride == s.k_stride;
}

/// True if all addresses are multiples of 16 bytes.
inline bool is_aligned(const lane& on, std::initializer_list<at> operands) {
  for (const at where : operands)
    if (reinterpret_cast<std::uintptr_t>(on.at<bf16>(where)) % 16 != 0) return false;
  return true;
}
/// True if fused kernels can read the operands of a call.
inline bool is_readable(const lane& on, const attention_sizes& s, std::initializer_list<at> operands) {
  return may_be_fused(s) && is_aligned(on, operands) && s.q_stride % 8 == 0 && s.k_stride % 8 == 0;
}

/// Enqueues attention, or its gradient. Returns false, and enqueues nothing, if no fused kernel takes the
/// call.
bool attention_fused(const lane&, at o, at lse, at scratch, at q, at k, at v, const attention_sizes&);
bool attention_grad_fused(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                          at lse, const attention_sizes&);
/// True if fused kernels take all of these calls, given aligned operands.
bool has_fused_attention(const lane&, bool gradient, std::initializer_list<attention_sizes>);

/// Enqueues attention, or its gradient, for a rank's chunks of sequences and gathered keys. It runs block by
/// block, and each block is causal or sees all of its keys. Returns false, and enqueues nothing, if fused
/// kernels do not take all blocks.
bool chunk_attention_fused(const lane&, at o, at lse, at scratch, at q, at k, at v, const runtime::chunks&,
                           const attention_sizes&);
bool chunk_attention_grad_fused(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                                at lse, const runtime::chunks&, const attention_sizes&);

/// Enqueues attention, or its gradient, for the keys of one rank of a ring. Returns false, and enqueues
/// nothing, if fused kernels do not take the block.
bool ring_attention_fused(const lane&, at o, at lse, at scratch, at q, at k, at v, const runtime::ring_step&,
                          const attention_sizes&);
bool ring_attention_grad_fused(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                               at lse, const runtime::ring_step&, const attention_sizes&);

}  // namespace rankc::runtime::cuda
