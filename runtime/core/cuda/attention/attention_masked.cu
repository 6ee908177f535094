// SPDX-License-Identifier: Apache-2.0
// Attention within documents and windows on Hopper's tensor cores, and its gradient, for heads of 64 and 128
// elements. Tiles of keys that no query of a tile sees are skipped.
#include "attention_hopper.hpp"

#include "hopper_launch.cuh"

namespace rankc::runtime::cuda {
namespace {

using namespace hopper;

constexpr std::size_t start_alignment = 16;  // alignment for copies by the copy engine

int count_keys(const masked_layout& in) { return in.gathered ? in.keys.seq : in.keys.count(); }

bool has_kernel(const lane& on, const masked_layout& in, const attention_sizes& s,
                const attention_setting& by) {
  attention_shape shape = shape_of(on, s);
  shape.seq = in.queries.length();
  return by.has_only_masks() && masked_attention_by_tiles(shape) && is_hopper(on) &&
         reinterpret_cast<std::uintptr_t>(in.starts) % start_alignment == 0;
}

masked_sight sight_of(const masked_layout& in, const attention_sizes& s, const attention_setting& by) {
  return {.starts = in.starts,
          .window = by.window,
          .queries = in.queries,
          .keys = in.keys,
          .gathered = in.gathered,
          .sequences = s.rows,
          .query_tiles = s.seq / box_side,
          .key_tiles = count_keys(in) / box_side};
}

attention_maps maps_of(const lane& on, const attention_operands& x, const masked_layout& in,
                       const attention_sizes& s) {
  const auto map = [&](at where, int tokens, int heads, int stride) {
    return tensor_map(on, on.at<bf16>(where), std::size_t{1} * s.rows * tokens, heads * s.dim, stride);
  };
  return {.q = map(x.q, s.seq, s.heads, s.q_stride),
          .k = map(x.k, count_keys(in), s.kv_heads, s.k_stride),
          .v = map(x.v, count_keys(in), s.kv_heads, s.k_stride)};
}

/// Calls `run` with the number of boxes, of 64 columns each, in a head.
template <class Run>
void with_parts(const attention_sizes& s, Run run) {
  if (s.dim == box_side) run(std::integral_constant<int, 1>());
  else run(std::integral_constant<int, 2>());
}

}  // namespace

bool masked_attention_hopper(const lane& on, at o, at lse, at q, at k, at v, const masked_layout& in,
                             const attention_sizes& s, const attention_setting& by) {
  if (!has_kernel(on, in, s, by) || !is_readable(on, s, {o, q, k, v})) return false;
  const attention_operands x{.q = q, .k = k, .v = v, .o = o, .lse = lse};
  with_parts(s, [&](auto parts) {
    run_forward<parts()>(on, maps_of(on, x, in, s), x, s, call_of(s, static_cast<float>(by.scale)),
                         sight_of(in, s, by));
  });
  return true;
}

bool masked_attention_grad_hopper(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v,
                                  at o, at lse, const masked_layout& in, const attention_sizes& s,
                                  const attention_setting& by) {
  if (!has_kernel(on, in, s, by) || !is_readable(on, s, {dq, dk, dv, scratch, dout, q, k, v, o}))
    return false;
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
  attention_maps of = maps_of(on, x, in, s);
  of.dout = tensor_map(on, on.at<bf16>(dout), std::size_t{1} * s.rows * s.seq, s.heads * s.dim, s.o_stride);
  with_parts(s, [&](auto parts) {
    run_gradient<parts()>(on, of, x, s, call_of(s, static_cast<float>(by.scale)), sight_of(in, s, by));
  });
  return true;
}

}  // namespace rankc::runtime::cuda
