// SPDX-License-Identifier: Apache-2.0
// GELU, SwiGLU and addition against loops and central differences.
#include "workspace.hpp"

#include <numbers>

namespace activation_test {

using namespace rankc::test;
namespace host = rankc::host;

namespace {

constexpr std::size_t count = 301;

values wide_values(unsigned seed) {
  values v = random_values(count, seed);
  for (double& x : v) x *= 4;
  return v;
}

values gelu_reference(const values& x) {
  values y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    y[i] =
        0.5 * x[i] * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x[i] + 0.044715 * std::pow(x[i], 3))));
  return y;
}

values swiglu_reference(const values& gate, const values& up) {
  values y(gate.size());
  for (std::size_t i = 0; i < gate.size(); ++i) y[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
  return y;
}

}  // namespace

TEST_CASE_TEMPLATE("GELU is the tanh form, to its far ends", T, float, double) {
  workspace<T> space;
  values x = wide_values(1);
  x[0] = -200;
  x[1] = 200;
  x[2] = 0;
  const at y = space.room(count);
  host::gelu<T>(space.lane(), y, space.put(x), count);
  check_near(space.get(y, count), gelu_reference(x), tolerance<T>);
}

TEST_CASE("the GELU gradient is a central difference; dx may be dy") {
  workspace<double> space;
  const values x = wide_values(1), dy = random_values(count, 2);
  const at in_x = space.put(x), in_dy = space.put(dy), dx = space.room(count);
  host::gelu_grad<double>(space.lane(), dx, in_dy, in_x, count);
  check_near(space.get(dx, count), derivative(gelu_reference, x, dy), difference_tolerance);
  host::gelu_grad<double>(space.lane(), in_dy, in_dy, in_x, count);
  CHECK(space.get(in_dy, count) == space.get(dx, count));
}

TEST_CASE_TEMPLATE("SwiGLU is silu(gate) up, in place on either", T, float, double) {
  workspace<T> space;
  values gate = wide_values(1);
  const values up = wide_values(2);
  gate[0] = -200;
  gate[1] = 200;
  const at in_gate = space.put(gate), in_up = space.put(up), y = space.room(count);
  host::swiglu<T>(space.lane(), y, in_gate, in_up, count);
  check_near(space.get(y, count), swiglu_reference(gate, up), tolerance<T>);
  const at on_gate = space.put(gate), on_up = space.put(up);
  host::swiglu<T>(space.lane(), on_gate, on_gate, in_up, count);
  host::swiglu<T>(space.lane(), on_up, in_gate, on_up, count);
  CHECK(space.get(on_gate, count) == space.get(y, count));
  CHECK(space.get(on_up, count) == space.get(y, count));
}

TEST_CASE("SwiGLU gradients are central differences; dup may be dy") {
  workspace<double> space;
  const values gate = wide_values(1), up = wide_values(2), dy = random_values(count, 3);
  const at in_gate = space.put(gate), in_up = space.put(up), in_dy = space.put(dy);
  const at dgate = space.room(count), dup = space.room(count), dgate_again = space.room(count);
  host::swiglu_grad<double>(space.lane(), dgate, dup, in_dy, in_gate, in_up, count);
  const auto of_gate = [&](const values& v) { return swiglu_reference(v, up); };
  const auto of_up = [&](const values& v) { return swiglu_reference(gate, v); };
  check_near(space.get(dgate, count), derivative(of_gate, gate, dy), difference_tolerance);
  check_near(space.get(dup, count), derivative(of_up, up, dy), difference_tolerance);
  host::swiglu_grad<double>(space.lane(), dgate_again, in_dy, in_dy, in_gate, in_up, count);
  CHECK(space.get(in_dy, count) == space.get(dup, count));
  CHECK(space.get(dgate_again, count) == space.get(dgate, count));
}

TEST_CASE_TEMPLATE("add, in place on either operand", T, float, double) {
  workspace<T> space;
  const values a = random_values(count, 1), b = random_values(count, 2);
  const at on_a = space.put(a), on_b = space.put(b), y = space.room(count);
  host::add<T>(space.lane(), y, on_a, on_b, count);
  check_near(space.get(y, count), sum(a, b), tolerance<T>);
  host::add<T>(space.lane(), on_b, on_a, on_b, count);
  host::add<T>(space.lane(), on_a, on_a, space.put(b), count);
  CHECK(space.get(on_a, count) == space.get(y, count));
  CHECK(space.get(on_b, count) == space.get(y, count));
}

}  // namespace activation_test
