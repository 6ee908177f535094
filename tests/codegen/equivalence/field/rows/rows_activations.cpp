// SPDX-License-Identifier: Apache-2.0
// Activations, which are drawn. In a product with a drawn factor, such as swiglu = silu(gate) up, only the
// factor is drawn.
#include "map.hpp"

namespace field::elements {

namespace {

constexpr std::uint64_t gelu_key = key_of("gelu"), gelu_slope = key_of("gelu'"),
                        sigmoid_key = key_of("sigmoid"), sigmoid_slope = key_of("sigmoid'"),
                        silu_key = key_of("silu"), silu_slope = key_of("silu'");

}  // namespace

void gelu(call& c) {
  map(c, "y", "x", [](element x) { return draw(mix(gelu_key, x)); });
}
void gelu_grad(call& c) {
  map(c, "dx", "dy", "x", [](element dy, element x) { return multiply(dy, draw(mix(gelu_slope, x))); });
}
void sigmoid(call& c) {
  map(c, "y", "x", [](element x) { return draw(mix(sigmoid_key, x)); });
}
void sigmoid_grad(call& c) {
  map(c, "dx", "dy", "y", [](element dy, element y) { return multiply(dy, draw(mix(sigmoid_slope, y))); });
}
void swiglu(call& c) {
  map(c, "y", "gate", "up", [](element gate, element up) { return multiply(draw(mix(silu_key, gate)), up); });
}
void swiglu_grad(call& c) {
  const matrix &dy = c.in("dy"), &gate = c.in("gate"), &up = c.in("up");
  expect_alike(dy, gate);
  expect_alike(dy, up);
  matrix &dgate = out_like(c, "dgate", gate), &dup = out_like(c, "dup", up);
  for (std::size_t i = 0; i < dy.of.size(); ++i) {
    dgate.of[i] = multiply(dy.of[i], multiply(draw(mix(silu_slope, gate.of[i])), up.of[i]));
    dup.of[i] = multiply(dy.of[i], draw(mix(silu_key, gate.of[i])));
  }
}

}  // namespace field::elements
