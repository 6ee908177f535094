// SPDX-License-Identifier: Apache-2.0
// Softmax of rows against loops and central differences.
#include "workspace.hpp"

#include <algorithm>

namespace softmax_test {

using namespace rankc::test;
namespace host = rankc::host;

namespace {

constexpr int tokens = 5, width = 67;

values softmax_reference(const values& x) {
  values y(x.size());
  for (int n = 0; n < tokens; ++n) {
    const auto row = x.begin() + n * width;
    const double most = *std::max_element(row, row + width);
    double sum = 0;
    for (int c = 0; c < width; ++c) sum += std::exp(row[c] - most);
    for (int c = 0; c < width; ++c) y[n * width + c] = std::exp(row[c] - most) / sum;
  }
  return y;
}

}  // namespace

TEST_CASE_TEMPLATE("softmax, of large numbers, and in place", T, float, double) {
  workspace<T> space;
  values x = random_values(tokens * width, 1);
  for (int c = 0; c < width; ++c) x[c] = 300 * x[c] + 400;  // e^x alone would overflow
  const at in_x = space.put(x), y = space.room(x.size());
  const values seen = space.get(in_x, x.size());
  host::softmax<T>(space.lane(), y, in_x, tokens, width);
  check_near(space.get(y, x.size()), softmax_reference(seen), tolerance<T>);
  host::softmax<T>(space.lane(), in_x, in_x, tokens, width);
  CHECK(space.get(in_x, x.size()) == space.get(y, x.size()));
}

TEST_CASE("softmax's gradient is a central difference; dx may be dy") {
  workspace<double> space;
  const values x = random_values(tokens * width, 1), dy = random_values(tokens * width, 2);
  const at y = space.room(x.size()), in_dy = space.put(dy), dx = space.room(x.size());
  host::softmax<double>(space.lane(), y, space.put(x), tokens, width);
  host::softmax_dx<double>(space.lane(), dx, in_dy, y, tokens, width);
  check_near(space.get(dx, x.size()), derivative(softmax_reference, x, dy), difference_tolerance);
  host::softmax_dx<double>(space.lane(), in_dy, in_dy, y, tokens, width);
  CHECK(space.get(in_dy, x.size()) == space.get(dx, x.size()));
}

}  // namespace softmax_test
