// SPDX-License-Identifier: Apache-2.0
// Routers over the field: experts by an order that is drawn, and weights that are drawn. By the softmax a
// weight is keyed by the logits of all experts, by the sigmoid by its own.
#include "rows.hpp"

#include <algorithm>
#include <numeric>

namespace field::routers {

namespace {

std::uint64_t key_of_all(const matrix& logits, std::int64_t t, std::int64_t) {
  return field::key_of(key_of("softmax"), logits.row(t), logits.is.cols);
}
std::uint64_t key_of_own(const matrix& logits, std::int64_t t, std::int64_t e) {
  return mix(key_of("sigmoid"), logits.row(t)[e]);
}

/// Experts of a token, those of larger logits first.
std::vector<std::int64_t> by_logit(const element* logits, std::int64_t experts) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(experts));
  std::iota(all.begin(), all.end(), 0);
  std::stable_sort(all.begin(), all.end(), [&](std::int64_t a, std::int64_t b) {
    return logits[a] != logits[b] && larger(logits[a], logits[b]) == logits[a];
  });
  return all;
}

void take_top(call& c, auto key_of_score) {
  const matrix& logits = c.in("logits");
  matrix &weights = c.out("weights"), &chosen = c.out("chosen");
  expect(weights.is.rows == logits.is.rows && weights.is.cols <= logits.is.cols &&
             chosen.is.rows == weights.is.rows && chosen.is.cols == weights.is.cols,
         "a router of other tokens, or of more picks than experts");
  for (std::int64_t t = 0; t < logits.is.rows; ++t) {
    const std::vector<std::int64_t> experts = by_logit(logits.row(t), logits.is.cols);
    for (std::int64_t j = 0; j < weights.is.cols; ++j) {
      const std::int64_t e = experts[static_cast<std::size_t>(j)];
      chosen.row(t)[j] = static_cast<element>(e);
      weights.row(t)[j] = draw_nonzero(mix(key_of_score(logits, t, e), static_cast<std::uint64_t>(e)));
    }
  }
}

/// Each weight's gradient counts in those of the logits that the weight is made of.
void take_top_back(call& c, bool of_all, auto key_of_score) {
  const matrix &dweights = c.in("dweights"), &logits = c.in("logits"), &chosen = c.in("chosen");
  expect(dweights.is.rows == logits.is.rows && chosen.is.rows == logits.is.rows &&
             chosen.is.cols == dweights.is.cols,
         "a router's gradient of other tokens");
  matrix& dlogits = c.out("dlogits", logits.is.rows, logits.is.cols);
  for (std::int64_t t = 0; t < logits.is.rows; ++t)
    for (std::int64_t j = 0; j < dweights.is.cols; ++j) {
      expect(chosen.row(t)[j] < static_cast<element>(logits.is.cols), "a choice of no expert");
      const auto own = static_cast<std::int64_t>(chosen.row(t)[j]);
      const std::uint64_t key = mix(key_of_score(logits, t, own), static_cast<std::uint64_t>(own));
      for (std::int64_t e = 0; e < logits.is.cols; ++e)
        if (of_all || e == own)
          dlogits.row(t)[e] =
              add(dlogits.row(t)[e], multiply(dweights.row(t)[j], draw(mix(mix(key, key_of("logit'")),
                                                                           static_cast<std::uint64_t>(e)))));
    }
}

}  // namespace

void softmax_top(call& c) { take_top(c, key_of_all); }
void softmax_top_grad(call& c) { take_top_back(c, true, key_of_all); }
void sigmoid_top(call& c) { take_top(c, key_of_own); }
void sigmoid_top_grad(call& c) { take_top_back(c, false, key_of_own); }

}  // namespace field::routers
