// SPDX-License-Identifier: Apache-2.0
// Ring attention. Keys and values are sent around a ring of ranks. In each step a rank computes attention of
// its queries to one rank's keys: first its own, then those of the previous rank, and so on. With a window
// that reaches fewer than all ranks, keys are sent only to the neighbours whose queries may see them, in both
// directions. The result of a step is a softmax over these keys and its log-sum-exp. The results are merged
// in the order of the steps.
// Backward recomputes each step's scores from the log-sum-exp of the merged result. It sends keys and values
// again, and their gradients back to the rank of the keys.
// Source: ring attention (Liu et al. 2023), with zig-zag chunks (Zhu 2024); step rule as in Megatron-LM.
#pragma once
#include <rankc/ops/conversions.hpp>

namespace rankc {

/// The steps of ring attention. One more step attends to the keys of the rank itself.
struct ring_steps {
  int before;     // ranks before this one whose keys it receives
  int after = 0;  // ranks after this one whose keys it receives

  constexpr int count() const { return 1 + before + after; }
  constexpr bool goes_one_way() const { return after == 0; }
};
/// The steps that some rank of the ring needs. Chunks that are neighbours in the sequence lie on neighbours
/// in the ring, so the queries of a window that spans n more chunks see the keys of n ranks on each side.
constexpr ring_steps steps_of_ring(long long window, long long seq, int ring) {
  if (window < 1 || ring < 2 || seq < 2 * ring) return {ring - 1};
  const long long chunk = seq / (2 * ring);
  const long long chunks = (window - 1 + chunk - 1) / chunk;
  if (2 * chunks >= ring - 1) return {ring - 1};
  const int reach = static_cast<int>(chunks);
  return {reach, reach};
}

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
/// The rank's own keys and values, from those that forward received in some step.
constexpr value_pair own_keys(const trace& t, value_pair kv) {
  for (std::size_t i = t.forward_ops; i-- > 0;)
    if (const op& o = t.ops[i]; o.kind->is_shift() && o.out[0] == kv.first.id)
      kv = {{kv.first.in, o.in[0]}, {kv.second.in, o.in[1]}};
  return kv;
}
/// The keys and values of a neighbour's neighbour: those that backward has already sent, or a new shift.
constexpr value_pair sent_on(trace& t, value_pair kv, const op_row& shifts, int ring) {
  for (std::size_t i = t.forward_ops; i < t.ops.size(); ++i)
    if (const op& o = t.ops[i]; o.kind == &shifts && o.in[0] == kv.first.id)
      return {{&t, o.out[0]}, {&t, o.out[1]}};
  return (&shifts == &ops::shift ? rankc::shift : rankc::shift_back)({kv.first, "", 0}, kv.second, axis::cp,
                                                                     ring);
}
/// Keys and values of one backward step, from those of the step in forward. Around a whole ring they travel
/// in the opposite direction, so that each shift brings the keys of the next backward step. With a window
/// that reaches fewer than all ranks they are sent as in forward.
constexpr value_pair sent_again(trace& t, value_pair kv, const attributes& with) {
  const int step = static_cast<int>(with.step);
  const ring_steps steps = steps_of_ring(with.attention.window, with.seq, with.ring);
  if (step == 0) return kv;
  const bool back = steps.goes_one_way() || step > steps.before;
  kv = own_keys(t, kv);
  for (int n = back ? with.ring - step : step; n > 0; --n)
    kv = sent_on(t, kv, back ? ops::shift_back : ops::shift, with.ring);
  return kv;
}

/// The merged attention of all steps. `part` appends one step for the keys and values that have arrived.
constexpr value around_ring(operand q, value_pair own, attributes with, auto part) {
  trace& t = *q.v.in;
  const value made = part(own, with);
  value_pair whole{made, result(made, 1)};
  const auto merge_step = [&](value_pair kv, int step) {
    with.step = step;
    const value more = part(kv, with);
    const value merged = t.apply(ops::merge_attention, {whole.first, whole.second, more, result(more, 1)},
                                 q.from, {.with = {.rows = with.rows, .seq = with.seq, .ring = with.ring}});
    whole = {merged, result(merged, 1)};
  };
  const ring_steps steps = steps_of_ring(with.attention.window, with.seq, with.ring);
  value_pair kv = own;
  for (int n = 1; n <= steps.before; ++n) {
    kv = shift({kv.first, q.from.file, q.from.line}, kv.second, axis::cp, with.ring);
    merge_step(kv, n);
  }
  kv = own;
  for (int n = 1; n <= steps.after; ++n) {
    kv = shift_back({kv.first, q.from.file, q.from.line}, kv.second, axis::cp, with.ring);
    merge_step(kv, with.ring - n);
  }
  return whole.first;
}
}  // namespace detail

}  // namespace rankc
