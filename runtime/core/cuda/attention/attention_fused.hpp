// SPDX-License-Identifier: Apache-2.0
// Attention in bf16 by fused kernels, of the shapes that attention_scratch.hpp names: rankc's for Hopper, or
// else cuDNN's.
#pragma once
#include <rankc/runtime/cuda/kernels.hpp>
#include <rankc/runtime/ring_step.hpp>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <initializer_list>

namespace rankc::runtime::cuda {

/// The sizes of a call to attention. Units: strides in elements, from one token to the next; that of o and
/// dout is o_stride.
struct attention_sizes {
  int rows, seq, heads, kv_heads, dim, value_dim, q_stride, k_stride, v_stride, o_stride;
  // that every query sees; 0: as many as there are queries, of which each sees its own and those before
  int keys = 0;
  int apart = 0;  // tokens from one row to the next, of queries and of keys; 0: as many as there are
  auto operator<=>(const attention_sizes&) const = default;
  bool is_causal() const { return keys == 0; }
  int n_keys() const { return keys == 0 ? seq : keys; }
  std::int64_t queries_apart() const { return apart == 0 ? seq : apart; }
  std::int64_t keys_apart() const { return apart == 0 ? n_keys() : apart; }
};

/// The member `keys` for as many keys as queries.
constexpr int keys_of(int seq, const attention_setting& by) { return by.causal ? 0 : seq; }

/// What the generator has planned a call by.
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

/// Whether fused kernels may take a call: its heads have one size, and its keys and values one stride.
inline bool may_be_fused(const attention_sizes& s) {
  return s.value_dim == s.dim && s.v_stride == s.k_stride;
}

/// Whether loads of 16 bytes fit: addresses, and strides.
inline bool is_aligned(const lane& on, std::initializer_list<at> operands) {
  for (const at where : operands)
    if (reinterpret_cast<std::uintptr_t>(on.at<bf16>(where)) % 16 != 0) return false;
  return true;
}
inline bool is_aligned(const lane& on, const attention_sizes& s, std::initializer_list<at> operands) {
  return is_aligned(on, operands) && s.q_stride % 8 == 0 && s.k_stride % 8 == 0;
}

/// Enqueue attention, or its gradient. False where neither can do it: then nothing was enqueued.
bool attention_fused(const lane&, at o, at lse, at scratch, at q, at k, at v, const attention_sizes&);
bool attention_grad_fused(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                          at lse, const attention_sizes&);
/// Whether one of them can do either, of aligned operands, for all of these.
bool has_fused_attention(const lane&, bool gradient, std::initializer_list<attention_sizes>);

/// The same of a rank's chunks of sequences, to gathered keys: block by block, each of them causal or to all
/// of its keys. False where neither can do all of them: then nothing was enqueued.
bool chunk_attention_fused(const lane&, at o, at lse, at scratch, at q, at k, at v, const runtime::chunks&,
                           const attention_sizes&);
bool chunk_attention_grad_fused(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                                at lse, const runtime::chunks&, const attention_sizes&);

/// The same of one rank's keys of a ring.
bool ring_attention_fused(const lane&, at o, at lse, at scratch, at q, at k, at v, const runtime::ring_step&,
                          const attention_sizes&);
bool ring_attention_grad_fused(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                               at lse, const runtime::ring_step&, const attention_sizes&);

}  // namespace rankc::runtime::cuda
