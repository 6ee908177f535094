// SPDX-License-Identifier: Apache-2.0
// Products with a weight, and biases.
#pragma once
#include <rankc/typed/backward.hpp>

namespace rankc {

namespace ops {
using namespace ports;

constexpr double product_flops(const op_sizes& s) { return 2 * s("tokens") * s("in") * s("out"); }

inline constexpr op_row linear_dx{
    .name = "linear_dx",
    .ports = {out("dx", "tokens in").adding(), in("dy", "tokens out"), parameter("w", "out in")},
    .rule = [](complaint& c, types in, type* out, const op&) { out[0] = rules::linear(c, in[0], in[1], 0); },
    .flops = product_flops,
    .host = {"linear_dx", "tokens in out"},
    .cuda = {"linear_dx", "tokens in out"}};
inline constexpr op_row linear_dw{
    .name = "linear_dw",
    .ports = {sum("dw", "out in"), in("dy", "tokens out"), in("x", "tokens in")},
    .rule = [](complaint& c, types in, type* out, const op&) {
      for (axis a : axes) out[0][a] = rules::outer(c, in[1], in[0], a);
    },
    .flops = product_flops,
    .host = {"linear_dw", "tokens in out"},
    .cuda = {"linear_dw", "tokens in out"}};
inline constexpr op_row linear{
    .name = "linear",
    .ports = {out("y", "tokens out"), in("x", "tokens in"), parameter("w", "out in")},
    .rule = [](complaint& c, types in, type* out, const op&) { out[0] = rules::linear(c, in[0], in[1]); },
    .dual = [](backward& b) {
      b.give("x", b.apply(linear_dx, {b.gradient("y"), b["w"]}));
      b.contribute({"w"}, linear_dw, {b.gradient("y"), b["x"]});
    },
    .flops = product_flops,
    .host = {"linear", "tokens in out"},
    .cuda = {"linear", "tokens in out"}};

inline constexpr op_row bias_grad{.name = "bias_grad",
                                  .ports = {sum("db", "width"), in("dy", "tokens width")},
                                  .rule = rules::over_tokens,
                                  .flops = no_flops,
                                  .host = {"bias_grad", "tokens width"},
                                  .cuda = {"bias_grad", "tokens width"}};
inline constexpr op_row bias{.name = "bias",
                             .ports = {out("y", "tokens width").over("x"), in("x", "tokens width"), parameter("b", "width")},
                             .rule = rules::bias,
                             .dual = [](backward& b) {
                               b.give("x", b.gradient("y"));
                               b.contribute({"b"}, bias_grad, {b.gradient("y")});
                             },
                             .flops = no_flops,
                             .host = {"bias", "tokens width"},
                             .cuda = {"bias", "tokens width"}};

}  // namespace ops

/// x w^T. Shapes: x (tokens, in), w (out, in).
constexpr value linear(operand x, value w) { return w.in->apply(ops::linear, {x.v, w}, x.from); }
/// x + b in every row. Shapes: x (tokens, width), b (width).
constexpr value bias(operand x, value b) { return b.in->apply(ops::bias, {x.v, b}, x.from); }

}  // namespace rankc
