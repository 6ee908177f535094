// SPDX-License-Identifier: Apache-2.0
// Attention of heads of 64 elements on Hopper's tensor cores, and its gradient. It is causal, or each query
// sees all keys.
#include "attention_hopper.hpp"

#include "hopper_launch.cuh"

namespace rankc::runtime::cuda {
namespace {

using namespace hopper;

CUtensorMap map_of(const lane& on, at x, std::int64_t apart, int tokens, const attention_sizes& s, int heads,
                   int stride) {
  return tensor_map(on, on.at<bf16>(x), static_cast<std::size_t>((s.rows - 1) * apart + tokens),
                    heads * s.dim, stride);
}
CUtensorMap map_of_queries(const lane& on, at x, const attention_sizes& s, int stride) {
  return map_of(on, x, s.queries_apart(), s.seq, s, s.heads, stride);
}
CUtensorMap map_of_keys(const lane& on, at x, const attention_sizes& s) {
  return map_of(on, x, s.keys_apart(), s.n_keys(), s, s.kv_heads, s.k_stride);
}

plain_sight sight_of(const attention_sizes& s) {
  return {.query_tiles = s.seq / box_side,
          .key_tiles = s.n_keys() / box_side,
          .keys_apart = static_cast<int>(s.keys_apart()),
          .causal = s.is_causal()};
}

}  // namespace

bool is_for_hopper(const lane& on, bool gradient, const attention_sizes& s) {
  const attention_shape shape = shape_of(on, s);
  return (gradient ? attention_grad_by_tiles(shape) : attention_by_tiles(shape)) && s.seq % box_side == 0 &&
         s.n_keys() % box_side == 0 && is_hopper(on);
}

bool attention_hopper(const lane& on, at o, at lse, at q, at k, at v, const attention_sizes& s) {
  if (!is_for_hopper(on, false, s) || !is_readable(on, s, {o, q, k, v})) return false;
  const attention_maps of{
      .q = map_of_queries(on, q, s, s.q_stride), .k = map_of_keys(on, k, s), .v = map_of_keys(on, v, s)};
  run_forward<1>(on, of, {.q = q, .k = k, .v = v, .o = o, .lse = lse}, s, call_of(s), sight_of(s));
  return true;
}

bool attention_grad_hopper(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                           at lse, const attention_sizes& s) {
  if (!is_for_hopper(on, true, s) || !is_readable(on, s, {dq, dk, dv, scratch, dout, q, k, v, o}))
    return false;
  const attention_maps of{.q = map_of_queries(on, q, s, s.q_stride),
                          .k = map_of_keys(on, k, s),
                          .v = map_of_keys(on, v, s),
                          .dout = map_of_queries(on, dout, s, s.o_stride)};
  const attention_operands x{.q = q,
                             .k = k,
                             .v = v,
                             .o = o,
                             .lse = lse,
                             .dout = dout,
                             .dq = dq,
                             .dk = dk,
                             .dv = dv,
                             .statistics = scratch};
  run_gradient<1>(on, of, x, s, call_of(s), sight_of(s));
  return true;
}

}  // namespace rankc::runtime::cuda
