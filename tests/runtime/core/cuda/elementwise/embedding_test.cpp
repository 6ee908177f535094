// SPDX-License-Identifier: Apache-2.0
#include "../bench.hpp"

namespace rankc::runtime::cuda::test::embedding_test {
namespace {

// The rank holds rows [first, first + rows) of a vocabulary of 60; other ranks hold the rest.
struct shape {
  int tokens, rows, width, first;
};
// Packs, and runs of equal ids longer than a chunk; rows held elsewhere, no packs; few tokens, without packs;
// one token; runs of hundreds of chunks; a table much larger than the tokens.
constexpr shape shapes[] = {{400, 60, 64, 0}, {400, 20, 50, 20},  {3, 60, 7, 0},
                            {1, 60, 8, 59},   {5000, 60, 136, 0}, {700, 9000, 64, 0}};

TEST_CASE_TEMPLATE("embedding and its gradient", T, float, bf16) {
  for (const auto [tokens, rows, width, first] : shapes) {
    CAPTURE(rows);
    CAPTURE(width);
    bench b;
    const std::size_t count = static_cast<std::size_t>(tokens) * width,
                      held = static_cast<std::size_t>(rows) * width;
    auto ids = random_ids(tokens, 60, 5);
    for (int n = 0; n < tokens; n += 3) ids[n] = 30;        // many tokens share one row
    for (int n = tokens / 2; n < tokens; ++n) ids[n] = 31;  // and consecutive tokens another one
    const numbers table = random_numbers<T>(held, 2.0, 1), dy = random_numbers<T>(count, 2.0, 2);
    const at ids_at = b.put(ids), table_at = b.put<T>(table), dy_at = b.put<T>(dy), y_at = b.room<T>(count),
             dtable_at = b.room<float>(held);
    embedding<T>(b.on(), y_at, ids_at, table_at, tokens, rows, width, first);
    embedding_grad<T>(b.on(), dtable_at, dy_at, ids_at, tokens, rows, width, first, false);
    numbers y(count, 0.0), dtable(held, 0.0);
    for (int n = 0; n < tokens; ++n)
      for (int c = 0; c < width; ++c) {
        const int row = ids[n] - first;
        if (row < 0 || row >= rows) continue;
        y[static_cast<std::size_t>(n) * width + c] = table[static_cast<std::size_t>(row) * width + c];
        dtable[static_cast<std::size_t>(row) * width + c] += dy[static_cast<std::size_t>(n) * width + c];
      }
    check_close("y", b.take<T>(y_at, count), y, 0.0, 0.0);
    check_close("dtable", b.take<float>(dtable_at, held), dtable, 1e-5, 1e-4);
    embedding_grad<T>(b.on(), dtable_at, dy_at, ids_at, tokens, rows, width, first, true);
    for (double& d : dtable) d *= 2;
    check_close("dtable, accumulated", b.take<float>(dtable_at, held), dtable, 1e-5, 2e-4);
  }
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::embedding_test
