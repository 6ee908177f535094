// SPDX-License-Identifier: Apache-2.0
// The squared error of values and targets.
#pragma once
#include <rankc/trace/backward.hpp>

namespace rankc {

namespace placement_rules {
/// Complains unless each row counts once and its target is on the same rank.
constexpr void squared_error(complaint& c, types in, type* out, const op&) {
  const type &x = in[0], &targets = in[1];
  if (!rows(c, "the value", x)) return;
  for (axis a : axes) {
    if (x[a] == P) c.found(a, "the value", x, "I, or sharded along the rows (V)", reduce_first);
    else if (x[a] == R)
      c.found(a, "the value", x, "I, or sharded along the rows (V)",
              "do not replicate what it is made from (each rank would count the loss)");
    else if (x[a] == V(1)) c.found(a, "the value", x, "whole rows", "all_gather it first");
    else if (targets[a] != x[a])
      c.found(a, "the targets", targets, "the placement of the value", "take the targets of these rows");
    out[0][a] = x[a] == V(0) ? P : x[a];
  }
}
}  // namespace placement_rules

namespace ops {
inline constexpr op_row squared_error_grad{
    .name = "squared_error_grad",
    .ports = {out("dx", "tokens width").over("x"), in("x", "tokens width"),
              in("targets", "tokens width").wide()},
    .rule = placement_rules::elementwise<false>,
    .sizes = "tokens*width number"};
inline constexpr op_row squared_error{
    .name = "squared_error",
    .ports = {sum("loss", ""), in("x", "tokens width"), in("targets", "tokens width").wide()},
    .rule = placement_rules::squared_error,
    .dual = [](backward& b) { b.give("x", b.apply(squared_error_grad, {b["x"], b["targets"]})); },
    .sizes = "tokens*width number"};
}  // namespace ops

/// The sum of squared differences over all elements, times `scale`.
/// Shapes: x and targets (rows, width); targets hold element::wide.
/// Errors: RC210, RC260.
constexpr value squared_error(operand x, value targets, double scale) {
  return x.v.in->apply(ops::squared_error, {x.v, targets}, x.from, {.with = {.factor = scale}});
}

}  // namespace rankc
