// SPDX-License-Identifier: Apache-2.0
// Masks of padding on the columns of one rank, whole and split.
#include "workspace.hpp"

namespace padding_test {

using namespace rankc::test;
namespace host = rankc::host;

namespace {

constexpr int tokens = 3, vocab = 12, columns = 7;

/// x with `other` in the columns of the padding; x has the columns from `first` on.
values masked(values x, int width, int first, double other) {
  for (int n = 0; n < tokens; ++n)
    for (int c = 0; c < width; ++c)
      if (first + c >= columns) x[n * width + c] = other;
  return x;
}

}  // namespace

TEST_CASE_TEMPLATE("padding is masked, and its gradient is 0, in place too", T, float, double) {
  // Whole; without padding; with some; padding alone.
  for (const auto& [first, width] : {std::pair{0, vocab}, {0, 4}, {4, 4}, {8, 4}}) {
    CAPTURE(first);
    CAPTURE(width);
    workspace<T> space;
    const values given = random_values(tokens * width, 1);
    const at x = space.put(given), y = space.room(given.size()), dx = space.room(given.size());
    const values seen = space.get(x, given.size());
    host::mask_padding<T>(space.lane(), y, x, tokens, width, first, columns);
    host::mask_padding_grad<T>(space.lane(), dx, x, tokens, width, first, columns);
    CHECK(space.get(y, given.size()) == masked(seen, width, first, -0x1p100));
    CHECK(space.get(dx, given.size()) == masked(seen, width, first, 0));
    host::mask_padding<T>(space.lane(), x, x, tokens, width, first, columns);
    CHECK(space.get(x, given.size()) == masked(seen, width, first, -0x1p100));
    host::mask_padding_grad<T>(space.lane(), x, x, tokens, width, first, columns);
    CHECK(space.get(x, given.size()) == masked(seen, width, first, 0));
  }
}

TEST_CASE_TEMPLATE("a softmax of masked logits is that of the others", T, float, double) {
  workspace<T> space;
  values given = random_values(tokens * vocab, 2);
  for (double& x : given) x = 8 * x - 90;  // far below the 0 of a row of padding
  const at x = space.put(given), y = space.room(given.size());
  const values seen = space.get(x, given.size());
  host::mask_padding<T>(space.lane(), x, x, tokens, vocab, 0, columns);
  host::softmax<T>(space.lane(), y, x, tokens, vocab);
  values expected(given.size());
  for (int n = 0; n < tokens; ++n) {
    double sum = 0;
    for (int c = 0; c < columns; ++c) sum += std::exp(seen[n * vocab + c]);
    for (int c = 0; c < columns; ++c) expected[n * vocab + c] = std::exp(seen[n * vocab + c]) / sum;
  }
  check_near(space.get(y, given.size()), expected, tolerance<T>);
}

}  // namespace padding_test
