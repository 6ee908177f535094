// SPDX-License-Identifier: Apache-2.0
// Ops that take an element at a time: sums, GELU, SwiGLU.
#pragma once
#include <rankc/typed/backward.hpp>

namespace rankc {

namespace ops {
using namespace ports;

inline constexpr op_row gelu_grad{
    .name = "gelu_grad",
    .ports = {out("dx", "tokens width").over("dy"), in("dy", "tokens width"), in("x", "tokens width")},
    .rule = rules::gradient_of_elementwise,
    .flops = no_flops,
    .host = {"gelu_grad", "tokens*width"},
    .cuda = {"gelu_grad", "tokens*width"}};
inline constexpr op_row gelu{.name = "gelu",
                             .ports = {out("y", "tokens width"), in("x", "tokens width")},
                             .rule = rules::elementwise<false>,
                             .dual = [](backward& b) { b.give("x", b.apply(gelu_grad, {b.gradient("y"), b["x"]})); },
                             .flops = no_flops,
                             .host = {"gelu", "tokens*width"},
                             .cuda = {"gelu", "tokens*width"}};

inline constexpr op_row swiglu_grad{
    .name = "swiglu_grad",
    .ports = {out("dgate", "tokens width : stride"), out("dup", "tokens width : stride"), in("dy", "tokens width"),
              in("gate", "tokens width : stride"), in("up", "tokens width : stride")},
    .rule = rules::gradient_of_elementwise,
    .flops = no_flops,
    .host = {"swiglu_grad", "tokens*width"},
    .cuda = {"swiglu_grad", "tokens width stride"}};
inline constexpr op_row swiglu{
    .name = "swiglu",
    .ports = {out("y", "tokens width"), in("gate", "tokens width : stride"), in("up", "tokens width : stride")},
    .rule = [](complaint& c, types in, type* out, const op& o) {
      rules::sum(c, in, out, o);
      for (axis a : axes)
        if (in[0][a] == P) c.found(a, "gate", in[0], rules::any_but_pending, rules::reduce_first);
    },
    .dual = [](backward& b) {
      const value gate = b.apply(swiglu_grad, {b.gradient("y"), b["gate"], b["up"]});
      b.give("gate", gate);
      b.give("up", result(gate, 1));
    },
    .flops = no_flops,
    .host = {"swiglu", "tokens*width"},
    .cuda = {"swiglu", "tokens width stride"}};

}  // namespace ops

/// a + b, elementwise.
constexpr value operator+(operand a, value b) { return b.in->apply(ops::add, {a.v, b}, a.from); }

/// GELU, tanh form; SwiGLU: silu(gate) * up.
constexpr value gelu(operand x) { return x.v.in->apply(ops::gelu, {x.v}, x.from); }
constexpr value swiglu(operand gate, value up) { return up.in->apply(ops::swiglu, {gate.v, up}, gate.from); }

}  // namespace rankc
