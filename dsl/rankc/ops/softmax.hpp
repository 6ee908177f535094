// SPDX-License-Identifier: Apache-2.0
// Softmax along rows.
#pragma once
#include <rankc/trace/backward.hpp>

namespace rankc {

namespace ops {

inline constexpr op_row softmax_dx{
    .name = "softmax_dx",
    .ports = {out("dx", "tokens width").over("dy"), in("dy", "tokens width"), in("y", "tokens width")},
    .rule = placement_rules::gradient_of_elementwise,
    .sizes = "tokens width"};
inline constexpr op_row softmax{
    .name = "softmax",
    .ports = {out("y", "tokens width").over("x"), in("x", "tokens width")},
    .rule =
        [](complaint& c, types in, type* out, const op& o) {
          placement_rules::elementwise<false>(c, in, out, o);
          for (axis a : axes)
            if (in[0][a] == V(1))
              c.found(a, "the value", in[0], "the whole row on each rank (its sum is taken)",
                      "all_gather it first");
        },
    .dual = [](backward& b) { b.give("x", b.apply(softmax_dx, {b.gradient("y"), b["y"]})); },
    .sizes = "tokens width",
    .family = op_family::activation};

}  // namespace ops

/// Softmax of each row; a rank has whole rows.
/// Shapes: x (tokens, width).
/// Errors: RC210.
constexpr value softmax(operand x) { return x.v.in->apply(ops::softmax, {x.v}, x.from); }

}  // namespace rankc
