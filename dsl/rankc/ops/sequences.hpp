// SPDX-License-Identifier: Apache-2.0
// The mean of each sequence over its tokens.
#pragma once
#include <rankc/ops/conversions.hpp>

namespace rankc {

/// The name of the dim of values that have a row for each sequence.
inline constexpr std::string_view sequence_dim = "sequences";

namespace placement_rules {
/// A mean of tokens that are sharded over cp is a pending sum, because a rank has only some tokens of each
/// sequence.
constexpr placement mean_over(axis a, const type& x) { return x[a] == V(0) && cuts_sequences(a) ? P : x[a]; }
constexpr void sequence_mean(complaint& c, types in, type* out, const op& o) {
  const type& x = in[0];
  if (!rows(c, "the value", x)) return;
  whole_sequences(c, "the value", x);
  if (x[axis::cp] == R)
    c.found(axis::cp, "the value", x, "sharded along the tokens",
            "take the mean before all_gather, which puts tokens in the order of ranks");
  const int seq = o.with.seq;
  if (!c.said && (seq < 1 || x.shape[0].size % seq))
    c.begin() << "sequences of " << seq << " tokens do not divide the " << x.shape[0].size << " tokens";
  out[0] = x;
  out[0].shape[0] = dim{sequence_dim, x.shape[0].size / std::max(seq, 1)};
  for (axis a : axes) out[0][a] = mean_over(a, x);
}
constexpr void sequence_mean_gradient(complaint& c, types in, type* out, const op&) {
  const type &g = in[0], &x = in[1];
  out[0] = cotangent(x);
  for (axis a : axes)
    if (g[a] != cotangent(mean_over(a, x)))
      c.found(a, "the gradient", g, "what belongs to the placement of the tokens", "check the op's dual");
}
}  // namespace placement_rules

namespace ops {
/// `x` gives the gradient its tokens. No kernel reads its elements.
inline constexpr op_row sequence_mean_grad{
    .name = "sequence_mean_grad",
    .ports = {out("dx", "tokens width").over("x"), in("dy", "sequences width"), in("x", "tokens width")},
    .rule = placement_rules::sequence_mean_gradient,
    .sizes = "tokens width rows seq"};
inline constexpr op_row sequence_mean{
    .name = "sequence_mean",
    .ports = {out("y", "sequences width"), in("x", "tokens width")},
    .rule = placement_rules::sequence_mean,
    .dual = [](backward& b) { b.give("x", b.apply(sequence_mean_grad, {b.gradient("y"), b["x"]})); },
    .sizes = "tokens width rows seq"};
}  // namespace ops

/// The mean of each sequence over its tokens: a pending sum over cp. A rank has tokens of `rows` sequences of
/// `seq` tokens.
/// Shapes: x (tokens, width); result (sequences, width).
/// Errors: RC210.
constexpr value sequence_mean(operand x, int rows, int seq) {
  return x.v.in->apply(ops::sequence_mean, {x.v}, x.from, {.with = {.rows = rows, .seq = seq}});
}

}  // namespace rankc
