// SPDX-License-Identifier: Apache-2.0
// Linear layers and biases against loops and central differences.
#include "workspace.hpp"

namespace linear_test {

using namespace rankc::test;
namespace host = rankc::host;

namespace {

constexpr int tokens = 7, in = 5, out = 9;

values linear_reference(const values& x, const values& w) {
  values y(tokens * out);
  for (int n = 0; n < tokens; ++n)
    for (int o = 0; o < out; ++o)
      for (int i = 0; i < in; ++i) y[n * out + o] += x[n * in + i] * w[o * in + i];
  return y;
}

}  // namespace

TEST_CASE_TEMPLATE("linear is x w^T", T, float, double) {
  workspace<T> space;
  const values x = random_values(tokens * in, 1), w = random_values(out * in, 2);
  const at y = space.room(tokens * out);
  host::linear<T>(space.lane(), y, space.put(x), space.put(w), tokens, in, out);
  check_near(space.get(y, tokens * out), linear_reference(x, w), tolerance<T>);
}

TEST_CASE("linear gradients are central differences, overwritten or added") {
  workspace<double> space;
  const values x = random_values(tokens * in, 1), w = random_values(out * in, 2);
  const values dy = random_values(tokens * out, 3), before_x = random_values(x.size(), 4);
  const values before_w = random_values(w.size(), 5);
  const at in_x = space.put(x), in_w = space.put(w), in_dy = space.put(dy);
  const values dx_want = derivative([&](const values& v) { return linear_reference(v, w); }, x, dy);
  const values dw_want = derivative([&](const values& v) { return linear_reference(x, v); }, w, dy);

  const at dx = space.room(x.size()), dw = space.room(w.size());
  host::linear_dx<double>(space.lane(), dx, in_dy, in_w, tokens, in, out, false);
  host::linear_dw<double>(space.lane(), dw, in_dy, in_x, tokens, in, out, false);
  check_near(space.get(dx, x.size()), dx_want, difference_tolerance);
  check_near(space.get(dw, w.size()), dw_want, difference_tolerance);

  const at dx_sum = space.put(before_x), dw_sum = space.put(before_w);
  host::linear_dx<double>(space.lane(), dx_sum, in_dy, in_w, tokens, in, out, true);
  host::linear_dw<double>(space.lane(), dw_sum, in_dy, in_x, tokens, in, out, true);
  check_near(space.get(dx_sum, x.size()), sum(before_x, space.get(dx, x.size())), 1e-14);
  check_near(space.get(dw_sum, w.size()), sum(before_w, space.get(dw, w.size())), 1e-14);
}

TEST_CASE_TEMPLATE("bias adds b to every token, in place too; its gradient is the sum over tokens", T, float,
                   double) {
  constexpr int width = 131;  // more than one block of column sums
  workspace<T> space;
  const values x = random_values(tokens * width, 1), b = random_values(width, 2),
               before = random_values(width, 3);
  values y_want = x, db_want(width);
  for (int n = 0; n < tokens; ++n)
    for (int c = 0; c < width; ++c) {
      y_want[n * width + c] += b[c];
      db_want[c] += x[n * width + c];
    }
  const at in_x = space.put(x), in_b = space.put(b), y = space.room(x.size());
  host::bias<T>(space.lane(), y, in_x, in_b, tokens, width);
  check_near(space.get(y, x.size()), y_want, tolerance<T>);
  host::bias<T>(space.lane(), in_x, in_x, in_b, tokens, width);
  CHECK(space.get(in_x, x.size()) == space.get(y, x.size()));

  const at dy = space.put(x), db = space.room(width), db_sum = space.put(before);
  host::bias_grad<T>(space.lane(), db, dy, tokens, width, false);
  host::bias_grad<T>(space.lane(), db_sum, dy, tokens, width, true);
  check_near(space.get(db, width), db_want, tolerance<T>);
  check_near(space.get(db_sum, width), sum(before, db_want), tolerance<T>);
}

}  // namespace linear_test
