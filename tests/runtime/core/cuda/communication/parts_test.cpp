// SPDX-License-Identifier: Apache-2.0
#include "../bench.hpp"

namespace rankc::runtime::cuda::test::parts_test {
namespace {

TEST_CASE_TEMPLATE("split gives the first and the last columns, and concat puts them together", T, float,
                   bf16) {
  struct shape {
    int rows, left, right;
    bool misplaced = false;
  };
  // Packs; the left part, then the right part, that allows none; addresses that allow none; one column.
  for (const auto [rows, left, right, misplaced] :
       {shape{70, 64, 128}, shape{33, 12, 64}, shape{33, 64, 6}, shape{9, 64, 64, true}, shape{1001, 1, 7}}) {
    CAPTURE(left);
    CAPTURE(right);
    bench b;
    if (misplaced) b.misplace();
    const std::size_t count = static_cast<std::size_t>(rows) * (left + right);
    const numbers x = random_numbers<T>(count, 4.0, 1);
    numbers first, second;
    for (std::size_t i = 0; i < count; ++i)
      (static_cast<int>(i % (left + right)) < left ? first : second).push_back(x[i]);
    const at x_at = b.put<T>(x), a_at = b.room<T>(first.size()), b_at = b.room<T>(second.size()),
             y_at = b.room<T>(count);
    split<T>(b.on(), a_at, b_at, x_at, rows, left, right);
    check_close("first", b.take<T>(a_at, first.size()), first, 0.0, 0.0);
    check_close("second", b.take<T>(b_at, second.size()), second, 0.0, 0.0);
    concat<T>(b.on(), y_at, a_at, b_at, rows, left, right);
    check_close("whole", b.take<T>(y_at, count), x, 0.0, 0.0);
  }
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::parts_test
