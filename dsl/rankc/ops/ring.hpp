// SPDX-License-Identifier: Apache-2.0
// Ring attention. Keys and values are sent around a ring of ranks. In each step a rank computes attention of
// its queries to one rank's keys: first its own, then those of the previous rank, and so on. The result of a
// step is a softmax over these keys and its log-sum-exp. The results are merged in the order of the steps.
// Backward recomputes each step's scores from the log-sum-exp of the merged result. It sends keys and values
// around the ring in the opposite direction, together with their gradients.
// Source: ring attention (Liu et al. 2023), with zig-zag chunks (Zhu 2024); step rule as in Megatron-LM.
#pragma once
#include <rankc/ops/conversions.hpp>

namespace rankc {

namespace placement_rules {
/// Complains if the two partial results of attention do not have the same type.
constexpr void merge_attention(complaint& c, types in, type* out, const op&) {
  out[0] = in[0];
  out[1] = in[1];
  for (int i = 0; i < 2 && !c.said; ++i)
    if (in[i] != in[i + 2]) {
      complaint::put_shape(c.begin() << "one part is ", in[i]);
      complaint::put_shape(c.text << " and the other ", in[i + 2]);
      c.text << "; expected two parts of one attention, of one placement";
    }
}
}  // namespace placement_rules

namespace ops {

inline constexpr op_row merge_attention{
    .name = "merge_attention",
    .ports = {out("o", "tokens heads*dim").over("o_before"),
              out("lse", "tokens heads").over("lse_before").wide(), in("o_before", "tokens heads*dim"),
              in("lse_before", "tokens heads").wide(), in("o_more", "tokens heads*dim"),
              in("lse_more", "tokens heads").wide()},
    .rule = placement_rules::merge_attention,
    .dual =
        [](backward& b) {  // each part gets the gradient of the merged output
          b.give("o_before", b.gradient("o"));
          b.give("o_more", b.gradient("o"));
        },
    .sizes = "rows tokens heads dim",
    .family = op_family::attention,
    .of_rings = true};

}  // namespace ops

namespace detail {
/// The merged output of all steps, and its log-sum-exp, from the result of one step.
constexpr value_pair whole_of(trace& t, int part) {
  int result = part, sums = part + 1;
  for (std::size_t i = 0; i < t.forward_ops; ++i) {
    const op& o = t.ops[i];
    if (o.kind != &ops::merge_attention || (o.in[0] != result && o.in[2] != result)) continue;
    result = o.out[0];
    sums = o.out[1];
  }
  return {{&t, result}, {&t, sums}};
}
/// Keys and values of one backward step. They start at the rank's own and travel the ring in the opposite
/// direction.
constexpr value_pair handed_back(trace& t, value_pair kv, int ring) {
  int steps = 0;
  for (std::size_t i = t.forward_ops; i-- > 0;)
    if (const op& o = t.ops[i]; o.kind == &ops::shift && o.out[0] == kv.first.id) {
      kv = {{&t, o.in[0]}, {&t, o.in[1]}};
      ++steps;
    }
  for (int n = steps; steps > 0 && n < ring; ++n) {
    const op* known = nullptr;
    for (std::size_t i = t.forward_ops; i < t.ops.size(); ++i)
      if (t.ops[i].kind == &ops::shift_back && t.ops[i].in[0] == kv.first.id) known = &t.ops[i];
    kv = known ? value_pair{{&t, known->out[0]}, {&t, known->out[1]}}
               : rankc::shift_back({kv.first, "", 0}, kv.second, axis::cp, ring);
  }
  return kv;
}

/// The merged attention of all steps. `part` appends one step for the keys and values that have arrived.
constexpr value around_ring(operand q, value_pair kv, attributes with, auto part) {
  trace& t = *q.v.in;
  value_pair whole{};
  for (int step = 0; step < with.ring; ++step) {
    if (step > 0) kv = shift({kv.first, q.from.file, q.from.line}, kv.second, axis::cp, with.ring);
    with.step = step;
    const value made = part(kv, with);
    if (step == 0) {
      whole = {made, result(made, 1)};
      continue;
    }
    const value merged = t.apply(ops::merge_attention, {whole.first, whole.second, made, result(made, 1)},
                                 q.from, {.with = {.rows = with.rows, .seq = with.seq, .ring = with.ring}});
    whole = {merged, result(merged, 1)};
  }
  return whole.first;
}
}  // namespace detail

}  // namespace rankc
