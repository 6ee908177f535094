// SPDX-License-Identifier: Apache-2.0
// Splits and concatenations of rows.
#include "workspace.hpp"

namespace parts_test {

using namespace rankc::test;
namespace host = rankc::host;

TEST_CASE_TEMPLATE("split gives the first and the last columns, and concat puts them together", T, float,
                   double) {
  constexpr int rows = 7, left = 5, right = 9;
  workspace<T> space;
  const values x = random_values(rows * (left + right), 1);
  values first, second;
  for (int n = 0; n < rows; ++n)
    for (int c = 0; c < left + right; ++c) (c < left ? first : second).push_back(x[n * (left + right) + c]);
  const at a = space.room(first.size()), b = space.room(second.size()), y = space.room(x.size());
  host::split<T>(space.lane(), a, b, space.put(x), rows, left, right);
  CHECK(space.get(a, first.size()) == first);
  CHECK(space.get(b, second.size()) == second);
  host::concat<T>(space.lane(), y, a, b, rows, left, right);
  CHECK(space.get(y, x.size()) == x);
}

}  // namespace parts_test
