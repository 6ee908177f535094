// SPDX-License-Identifier: Apache-2.0
#include "../bench.hpp"

namespace rankc::runtime::cuda::test::bias_test {
namespace {

struct shape {
  int tokens, width;
};
// Packs; none; one token; more columns than a block sums, and rows that do not divide into chunks.
constexpr shape shapes[] = {{300, 256}, {37, 50}, {1, 7}, {1231, 1608}};

TEST_CASE_TEMPLATE("bias and its gradient", T, float, bf16) {
  for (const auto [tokens, width] : shapes) {
    CAPTURE(tokens);
    CAPTURE(width);
    bench b;
    const std::size_t count = static_cast<std::size_t>(tokens) * width;
    const numbers x = random_numbers<T>(count, 2.0, 1), shift = random_numbers<T>(width, 2.0, 2);
    const at x_at = b.put<T>(x), shift_at = b.put<T>(shift), y_at = b.room<T>(count),
             db_at = b.room<float>(width);
    bias<T>(b.on(), y_at, x_at, shift_at, tokens, width);
    bias_grad<T>(b.on(), db_at, x_at, tokens, width, false);
    numbers y(count), db(width, 0.0);
    for (std::size_t i = 0; i < count; ++i) {
      y[i] = x[i] + shift[i % width];
      db[i % width] += x[i];
    }
    check_rounded<T>("y", b.take<T>(y_at, count), y);
    check_close("db", b.take<float>(db_at, width), db, 1e-5, 1e-4);  // sums of up to 1231 numbers below 2
    bias_grad<T>(b.on(), db_at, x_at, tokens, width, true);
    for (double& d : db) d *= 2;
    check_close("db, accumulated", b.take<float>(db_at, width), db, 1e-5, 2e-4);
    const numbers residual = random_numbers<T>(count, 2.0, 3);
    const at residual_at = b.put<T>(residual), added_at = b.room<T>(count);
    bias_add<T>(b.on(), added_at, x_at, shift_at, residual_at, tokens, width);
    numbers added(count);
    for (std::size_t i = 0; i < count; ++i) added[i] = y[i] + residual[i];
    check_rounded<T>("y + residual", b.take<T>(added_at, count), added);
    bias_add<T>(b.on(), residual_at, x_at, shift_at, residual_at, tokens, width);
    check_rounded<T>("y + residual, in place", b.take<T>(residual_at, count), added);
    bias<T>(b.on(), x_at, x_at, shift_at, tokens, width);
    check_rounded<T>("y in place", b.take<T>(x_at, count), y);
  }
}

TEST_CASE_TEMPLATE("learned positions and their gradient", T, float, bf16) {
  for (const auto [tokens, width] : shapes)
    for (const int first : {0, 5}) {
      CAPTURE(tokens);
      CAPTURE(width);
      CAPTURE(first);
      constexpr int seq = 25;  // tokens wrap around it several times, or do not fill it
      bench b;
      const std::size_t count = static_cast<std::size_t>(tokens) * width, rows = std::size_t{seq} * width;
      const numbers x = random_numbers<T>(count, 2.0, 1), table = random_numbers<T>(rows, 2.0, 2);
      const at x_at = b.put<T>(x), table_at = b.put<T>(table), y_at = b.room<T>(count),
               dtable_at = b.room<float>(rows);
      position<T>(b.on(), y_at, x_at, table_at, tokens, width, seq, first);
      position_grad<T>(b.on(), dtable_at, x_at, tokens, width, seq, first, false);
      numbers y(count), dtable(rows, 0.0);
      for (int n = 0; n < tokens; ++n)
        for (int c = 0; c < width; ++c) {
          const std::size_t i = static_cast<std::size_t>(n) * width + c, p = (first + n) % seq * width + c;
          y[i] = x[i] + table[p];
          dtable[p] += x[i];
        }
      check_rounded<T>("y", b.take<T>(y_at, count), y);
      check_close("dtable", b.take<float>(dtable_at, rows), dtable, 1e-5, 1e-5);
      position_grad<T>(b.on(), dtable_at, x_at, tokens, width, seq, first, true);
      for (double& d : dtable) d *= 2;
      check_close("dtable, accumulated", b.take<float>(dtable_at, rows), dtable, 1e-5, 2e-5);
    }
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::bias_test
