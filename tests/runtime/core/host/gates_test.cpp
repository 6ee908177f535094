// SPDX-License-Identifier: Apache-2.0
// Products, multiples and the sigmoid against loops and central differences.
#include "workspace.hpp"

namespace gates_test {

using namespace rankc::test;
namespace host = rankc::host;

namespace {

constexpr std::size_t count = 301;

values product(values a, const values& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] *= b[i];
  return a;
}

values sigmoid_reference(values x) {
  for (double& v : x) v = 1 / (1 + std::exp(-v));
  return x;
}

}  // namespace

TEST_CASE_TEMPLATE("mul, in place on either operand", T, float, double) {
  workspace<T> space;
  const values a = random_values(count, 1), b = random_values(count, 2);
  const at on_a = space.put(a), on_b = space.put(b), y = space.room(count);
  host::mul<T>(space.lane(), y, on_a, on_b, count);
  check_near(space.get(y, count), product(a, b), tolerance<T>);
  host::mul<T>(space.lane(), on_b, on_a, on_b, count);
  host::mul<T>(space.lane(), on_a, on_a, space.put(b), count);
  CHECK(space.get(on_a, count) == space.get(y, count));
  CHECK(space.get(on_b, count) == space.get(y, count));
}

TEST_CASE("mul's gradients are central differences; da may be dy; a factor may be both") {
  workspace<double> space;
  const values a = random_values(count, 1), b = random_values(count, 2), dy = random_values(count, 3);
  const at in_a = space.put(a), in_b = space.put(b), in_dy = space.put(dy), da = space.room(count),
           db = space.room(count);
  host::mul_grad<double>(space.lane(), da, db, in_dy, in_a, in_b, count);
  check_near(space.get(da, count), derivative([&](const values& v) { return product(v, b); }, a, dy),
             difference_tolerance);
  check_near(space.get(db, count), derivative([&](const values& v) { return product(a, v); }, b, dy),
             difference_tolerance);
  const at again = space.room(count), squared_a = space.room(count), squared_b = space.room(count);
  host::mul_grad<double>(space.lane(), squared_a, squared_b, in_dy, in_a, in_a, count);
  check_near(sum(space.get(squared_a, count), space.get(squared_b, count)),
             derivative([](const values& v) { return product(v, v); }, a, dy), difference_tolerance);
  host::mul_grad<double>(space.lane(), in_dy, again, in_dy, in_a, in_b, count);
  CHECK(space.get(in_dy, count) == space.get(da, count));
  CHECK(space.get(again, count) == space.get(db, count));
}

TEST_CASE_TEMPLATE("scale, in place too", T, float, double) {
  workspace<T> space;
  const values x = random_values(count, 1);
  const at in_x = space.put(x), y = space.room(count);
  host::scale<T>(space.lane(), y, in_x, count, -0.3);
  check_near(space.get(y, count), product(x, values(count, -0.3)), tolerance<T>);
  host::scale<T>(space.lane(), in_x, in_x, count, -0.3);
  CHECK(space.get(in_x, count) == space.get(y, count));
}

TEST_CASE_TEMPLATE("the sigmoid, to its far ends, in place too", T, float, double) {
  workspace<T> space;
  values x = random_values(count, 1);
  for (double& v : x) v *= 8;
  x[0] = -200;
  x[1] = 200;
  x[2] = 0;
  const at in_x = space.put(x), y = space.room(count);
  host::sigmoid<T>(space.lane(), y, in_x, count);
  check_near(space.get(y, count), sigmoid_reference(x), tolerance<T>);
  host::sigmoid<T>(space.lane(), in_x, in_x, count);
  CHECK(space.get(in_x, count) == space.get(y, count));
}

TEST_CASE("the sigmoid's gradient is a central difference; dx may be dy") {
  workspace<double> space;
  values x = random_values(count, 1);
  for (double& v : x) v *= 4;
  const values dy = random_values(count, 2);
  const at y = space.room(count), in_dy = space.put(dy), dx = space.room(count);
  host::sigmoid<double>(space.lane(), y, space.put(x), count);
  host::sigmoid_grad<double>(space.lane(), dx, in_dy, y, count);
  check_near(space.get(dx, count), derivative(sigmoid_reference, x, dy), difference_tolerance);
  host::sigmoid_grad<double>(space.lane(), in_dy, in_dy, y, count);
  CHECK(space.get(in_dy, count) == space.get(dx, count));
}

}  // namespace gates_test
