// SPDX-License-Identifier: Apache-2.0
// Elementwise ops: add, multiply, scale, GELU, SwiGLU, sigmoid.
#pragma once
#include <rankc/trace/backward.hpp>

#include <limits>

namespace rankc {

namespace detail {
/// The placement of a product over one axis. A pending sum stays pending if the other factor is replicated
/// (R).
constexpr placement product_over(complaint& c, axis a, const type& x, const type& y) {
  if (x[a] != P && y[a] != P) return placement_rules::sum_over(c, a, x, y);
  const bool is_left = x[a] == P;
  const type& other = is_left ? y : x;
  const std::string_view pending = is_left ? "the left operand" : "the right operand",
                         beside = is_left ? "the right operand" : "the left operand";
  if (other[a] == R) return P;
  if (other[a] == I)
    return c.found(a, beside, other, "replicated (R), the other being a pending sum",
                   "convert it first (replicate: its gradient is then all-reduced)");
  return c.found(a, pending, is_left ? x : y, placement_rules::any_but_pending,
                 placement_rules::reduce_first);
}
}  // namespace detail

namespace ops {

inline constexpr op_row gelu_grad{
    .name = "gelu_grad",
    .ports = {out("dx", "tokens width").over("dy"), in("dy", "tokens width"), in("x", "tokens width")},
    .rule = placement_rules::gradient_of_elementwise,
    .sizes = "tokens*width"};
inline constexpr op_row gelu{
    .name = "gelu",
    .ports = {out("y", "tokens width"), in("x", "tokens width")},
    .rule = placement_rules::elementwise<false>,
    .dual = [](backward& b) { b.give("x", b.apply(gelu_grad, {b.gradient("y"), b["x"]})); },
    .sizes = "tokens*width",
    .family = op_family::activation};

inline constexpr op_row swiglu_grad{
    .name = "swiglu_grad",
    .ports = {out("dgate", "tokens width : stride"), out("dup", "tokens width : stride"),
              in("dy", "tokens width"), in("gate", "tokens width : stride"),
              in("up", "tokens width : stride")},
    .rule = placement_rules::gradient_of_elementwise,
    .sizes = "tokens*width",
    .cuda = {.sizes = "tokens width stride"}};
inline constexpr op_row swiglu{
    .name = "swiglu",
    .ports = {out("y", "tokens width"), in("gate", "tokens width : stride"),
              in("up", "tokens width : stride")},
    .rule =
        [](complaint& c, types in, type* out, const op& o) {
          placement_rules::sum(c, in, out, o);
          for (axis a : axes)
            if (in[0][a] == P)
              c.found(a, "gate", in[0], placement_rules::any_but_pending, placement_rules::reduce_first);
        },
    .dual =
        [](backward& b) {
          const value gate = b.apply(swiglu_grad, {b.gradient("y"), b["gate"], b["up"]});
          b.give("gate", gate);
          b.give("up", result(gate, 1));
        },
    .sizes = "tokens*width",
    .cuda = {.sizes = "tokens width stride"},
    .family = op_family::activation};

inline constexpr op_row mul_grad{
    .name = "mul_grad",
    .ports = {out("da", "tokens width").over("dy"), out("db", "tokens width"), in("dy", "tokens width"),
              in("a", "tokens width"), in("b", "tokens width")},
    .rule =
        [](complaint& c, types in, type* out, const op&) {
          out[0] = out[1] = in[0];
          for (axis a : axes) out[0][a] = detail::product_over(c, a, in[0], in[2]);
          for (axis a : axes) out[1][a] = detail::product_over(c, a, in[0], in[1]);
        },
    .sizes = "tokens*width"};
inline constexpr op_row mul{
    .name = "mul",
    .ports = {out("y", "tokens width").over("a", "b"), in("a", "tokens width"), in("b", "tokens width")},
    .rule =
        [](complaint& c, types in, type* out, const op& o) {
          type alike[]{in[0], in[1]};  // shapes as in a sum; placements are checked below
          for (axis a : axes) alike[0][a] = alike[1][a] = I;
          placement_rules::sum(c, alike, out, o);
          for (axis a : axes) out[0][a] = detail::product_over(c, a, in[0], in[1]);
        },
    .dual =
        [](backward& b) {
          const value da = b.apply(mul_grad, {b.gradient("y"), b["a"], b["b"]});
          b.give("a", da);
          b.give("b", result(da, 1));
        },
    .sizes = "tokens*width",
    .commutative = true,
    .family = op_family::activation};

inline constexpr op_row scale{.name = "scale",
                              .ports = {out("y", "tokens width").over("x"), in("x", "tokens width")},
                              .rule =
                                  [](complaint& c, types in, type* out, const op& o) {
                                    placement_rules::elementwise<true>(c, in, out, o);
                                    constexpr double largest = std::numeric_limits<double>::max();
                                    if (!c.said && !(o.with.factor >= -largest && o.with.factor <= largest))
                                      c.begin() << "its factor is no finite number";
                                  },
                              .dual = [](backward& b) { b.give("x", b.apply(scale, {b.gradient("y")})); },
                              .sizes = "tokens*width number",
                              .family = op_family::activation};

inline constexpr op_row sigmoid_grad{
    .name = "sigmoid_grad",
    .ports = {out("dx", "tokens width").over("dy"), in("dy", "tokens width"), in("y", "tokens width")},
    .rule = placement_rules::gradient_of_elementwise,
    .sizes = "tokens*width"};
inline constexpr op_row sigmoid{
    .name = "sigmoid",
    .ports = {out("y", "tokens width").over("x"), in("x", "tokens width")},
    .rule = placement_rules::elementwise<false>,
    .dual = [](backward& b) { b.give("x", b.apply(sigmoid_grad, {b.gradient("y"), b["y"]})); },
    .sizes = "tokens*width",
    .family = op_family::activation};

}  // namespace ops

/// a + b, elementwise.
/// Shapes: a and b (tokens, width).
/// Errors: RC210.
constexpr value operator+(operand a, value b) { return b.in->apply(ops::add, {a.v, b}, a.from); }

/// a * b, elementwise. If one factor is a pending sum and the other is replicated, the product is pending.
/// Shapes: a and b (tokens, width).
/// Errors: RC210.
constexpr value operator*(operand a, value b) { return b.in->apply(ops::mul, {a.v, b}, a.from); }
/// factor * x. The placement does not change; a pending sum stays pending.
/// Shapes: x (tokens, width).
/// Errors: RC210.
constexpr value scale(operand x, double factor) {
  return x.v.in->apply(ops::scale, {x.v}, x.from, {.with = {.factor = factor}});
}
/// 1 / (1 + e^-x), e.g. for a gate: x * sigmoid(linear(x, w)).
/// Shapes: x (tokens, width).
/// Errors: RC210.
constexpr value sigmoid(operand x) { return x.v.in->apply(ops::sigmoid, {x.v}, x.from); }

/// GELU in its tanh form.
/// Shapes: x (tokens, width).
/// Errors: RC210.
constexpr value gelu(operand x) { return x.v.in->apply(ops::gelu, {x.v}, x.from); }
/// silu(gate) * up.
/// Shapes: gate and up (tokens, width).
/// Errors: RC210.
constexpr value swiglu(operand gate, value up) { return up.in->apply(ops::swiglu, {gate.v, up}, gate.from); }

}  // namespace rankc
