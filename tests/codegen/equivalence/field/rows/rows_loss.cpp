// SPDX-License-Identifier: Apache-2.0
// Cross entropy over a vocabulary that may be split. e^l is E(l), a drawn number other than 0. A row's
// maximum is the largest by a drawn order; the loss does not depend on it. e^(l - top) is E(l) / E(top). The
// sums of a row are S = the sum of E(l) / E(top), and T = E(l) / E(top) of the target, not the target's l -
// top. So both can be summed over parts of the vocabulary. The loss of a row, log S - (l - top), is drawn
// from S / T, in which the maximum cancels. The gradients are exact: 1 / S for S, from which E(l) / E(top)
// gives E(l) / sum E, and -1 for the target's logit.
#include "rows.hpp"

#include <algorithm>
#include <numeric>

namespace field::losses {

namespace {

constexpr std::uint64_t exponential = key_of("exp"), logarithm = key_of("log");

element exp_of(element l) { return draw_nonzero(mix(exponential, l)); }

void expect_rows(const matrix& logits, const matrix& top, const matrix& targets) {
  expect(top.is.rows == logits.is.rows && top.is.cols == 1 && targets.is.size() == logits.is.rows,
         "a loss of operands of other tokens");
}

/// Whether a rank's part of the vocabulary contains the target, and its column.
bool has(element target, std::int64_t first, std::int64_t vocab, std::int64_t& column) {
  if (target < static_cast<element>(first) || target >= static_cast<element>(first + vocab)) return false;
  column = static_cast<std::int64_t>(target) - first;
  return true;
}

}  // namespace

void mask_padding(call& c) {
  const matrix& x = c.in("x");
  matrix& y = c.out("y", x.is.rows, x.is.cols);
  for (std::int64_t t = 0; t < x.is.rows; ++t)
    for (std::int64_t i = 0; i < x.is.cols; ++i)
      y.row(t)[i] = static_cast<double>(c.first("x") + i) < c.number ? x.row(t)[i] : draw(key_of("masked"));
}
void mask_padding_grad(call& c) {
  const matrix& dy = c.in("dy");
  matrix& dx = c.out("dx", dy.is.rows, dy.is.cols);
  for (std::int64_t t = 0; t < dy.is.rows; ++t)
    for (std::int64_t i = 0; i < dy.is.cols; ++i)
      dx.row(t)[i] = static_cast<double>(c.first("dy") + i) < c.number ? dy.row(t)[i] : element{};
}

void row_max(call& c) {
  const matrix& logits = c.in("logits");
  expect(logits.is.cols > 0, "row_max: of nothing");
  matrix& top = c.out("top", logits.is.rows, 1);
  for (std::int64_t t = 0; t < logits.is.rows; ++t)
    top.of[t] = std::accumulate(logits.row(t) + 1, logits.row(t) + logits.is.cols, logits.row(t)[0], larger);
}

void exp_sums(call& c) {
  const matrix &logits = c.in("logits"), &top = c.in("top"), &targets = c.in("targets");
  expect_rows(logits, top, targets);
  matrix& sums = c.out("sums", logits.is.rows, 2);
  for (std::int64_t t = 0; t < logits.is.rows; ++t) {
    const element shift = inverse(exp_of(top.of[t]));
    for (std::int64_t i = 0; i < logits.is.cols; ++i)
      sums.row(t)[0] = add(sums.row(t)[0], multiply(exp_of(logits.row(t)[i]), shift));
    if (std::int64_t i; has(targets.of[t], c.first("logits"), logits.is.cols, i))
      sums.row(t)[1] = multiply(exp_of(logits.row(t)[i]), shift);
  }
}

void exp_sums_grad(call& c) {
  const matrix &dsums = c.in("dsums"), &logits = c.in("logits"), &top = c.in("top"),
               &targets = c.in("targets");
  expect_rows(logits, top, targets);
  expect(dsums.is.rows == logits.is.rows && dsums.is.cols == 2, "exp_sums_grad: sizes do not fit");
  matrix& dlogits = c.out("dlogits", logits.is.rows, logits.is.cols);
  for (std::int64_t t = 0; t < logits.is.rows; ++t) {
    const element shift = multiply(dsums.row(t)[0], inverse(exp_of(top.of[t])));
    for (std::int64_t i = 0; i < logits.is.cols; ++i)
      dlogits.row(t)[i] = multiply(exp_of(logits.row(t)[i]), shift);
    if (std::int64_t i; has(targets.of[t], c.first("logits"), logits.is.cols, i))
      dlogits.row(t)[i] = add(dlogits.row(t)[i], dsums.row(t)[1]);
  }
}

void cross_entropy(call& c) {
  const matrix& sums = c.in("sums");
  expect(sums.is.cols == 2, "cross_entropy: sums are two of a token");
  element total = 0;
  for (std::int64_t t = 0; t < sums.is.rows; ++t)
    total = add(total, draw(mix(logarithm, multiply(sums.row(t)[0], inverse(sums.row(t)[1])))));
  c.out("loss", 1, 1).of[0] = multiply(total, number(c.number));
}

void cross_entropy_grad(call& c) {
  const matrix& sums = c.in("sums");
  expect(sums.is.cols == 2, "cross_entropy_grad: sums are two of a token");
  matrix& dsums = c.out("dsums", sums.is.rows, 2);
  for (std::int64_t t = 0; t < sums.is.rows; ++t) {
    dsums.row(t)[0] = multiply(number(c.number), inverse(sums.row(t)[0]));
    dsums.row(t)[1] = negate(number(c.number));
  }
}

void count_labels(call& c) {
  const matrix& targets = c.in("targets");
  const auto ignored = std::count(targets.of.begin(), targets.of.end(), ignored_label);
  c.out("count", 1, 1).of[0] = static_cast<element>(targets.is.size() - ignored);
}

/// An element drawn from the count; it stands for 0 or minus infinity.
void skip_unlabeled(call& c) {
  c.out("total", 1, 1).of[0] = draw(mix(key_of("skipped"), c.in("count").of.at(0)));
}

void sum_weights(call& c) {
  const matrix &targets = c.in("targets"), &weights = c.in("weights");
  expect(targets.is.size() == weights.is.size(), "sum_weights: weights of other tokens");
  element sum = 0;
  for (std::int64_t t = 0; t < targets.is.size(); ++t)
    if (targets.of[t] != ignored_label) sum = add(sum, weights.of[t]);
  c.out("count", 1, 1).of[0] = sum;
}

/// The factor of a token's loss. `weights`: those of labels; nullptr: each is 1.
static element factor_of(const call& c, std::int64_t t, const matrix* weights) {
  if (c.in("targets").of[t] == ignored_label) return 0;
  const element of_step = multiply(number(c.number), inverse(c.in("count").of.at(0)));
  return weights == nullptr ? of_step : multiply(weights->of[t], of_step);
}

static void expect_labels(const call& c, const matrix* weights) {
  const matrix& sums = c.in("sums");
  expect(sums.is.cols == 2 && c.in("targets").is.size() == sums.is.rows &&
             (weights == nullptr || weights->is.size() == sums.is.rows),
         "a loss of labels: sums of other tokens");
}

static void sum_loss(call& c, const matrix* weights) {
  expect_labels(c, weights);
  const matrix& sums = c.in("sums");
  element total = 0;
  for (std::int64_t t = 0; t < sums.is.rows; ++t) {
    const element loss = draw(mix(logarithm, multiply(sums.row(t)[0], inverse(sums.row(t)[1]))));
    total = add(total, multiply(factor_of(c, t, weights), loss));
  }
  c.out("loss", 1, 1).of[0] = total;
}

static void gradient_of_sums(call& c, const matrix* weights) {
  expect_labels(c, weights);
  const matrix& sums = c.in("sums");
  matrix& dsums = c.out("dsums", sums.is.rows, 2);
  for (std::int64_t t = 0; t < sums.is.rows; ++t) {
    const element factor = factor_of(c, t, weights);
    dsums.row(t)[0] = multiply(factor, inverse(sums.row(t)[0]));
    dsums.row(t)[1] = negate(factor);
  }
}

void masked_cross_entropy(call& c) { sum_loss(c, nullptr); }
void masked_cross_entropy_grad(call& c) { gradient_of_sums(c, nullptr); }
void weighted_cross_entropy(call& c) { sum_loss(c, &c.in("weights")); }
void weighted_cross_entropy_grad(call& c) { gradient_of_sums(c, &c.in("weights")); }

void squared_error(call& c) {
  const matrix &x = c.in("x"), &targets = c.in("targets");
  expect(x.of.size() == targets.of.size(), "squared_error: sizes do not fit");
  element total = 0;
  for (std::size_t i = 0; i < x.of.size(); ++i) {
    const element apart = add(x.of[i], negate(targets.of[i]));
    total = add(total, multiply(apart, apart));
  }
  c.out("loss", 1, 1).of[0] = multiply(total, number(c.number));
}

void squared_error_grad(call& c) {
  const matrix &x = c.in("x"), &targets = c.in("targets");
  expect(x.of.size() == targets.of.size(), "squared_error_grad: sizes do not fit");
  matrix& dx = c.out("dx", x.is.rows, x.is.cols);
  const element twice = multiply(number(2), number(c.number));
  for (std::size_t i = 0; i < x.of.size(); ++i)
    dx.of[i] = multiply(twice, add(x.of[i], negate(targets.of[i])));
}

/// The number of tokens in each sequence.
static std::int64_t share_of(const call& c, std::int64_t tokens) {
  expect(c.rows > 0 && c.seq > 0 && tokens % c.rows == 0, "sequence_mean: no equal shares of sequences");
  return tokens / c.rows;
}

void sequence_mean(call& c) {
  const matrix& x = c.in("x");
  const std::int64_t each = share_of(c, x.is.rows);
  matrix& y = c.out("y", c.rows, x.is.cols);
  for (std::int64_t t = 0; t < x.is.rows; ++t)
    for (std::int64_t i = 0; i < x.is.cols; ++i) y.row(t / each)[i] = add(y.row(t / each)[i], x.row(t)[i]);
  for (element& sum : y.of) sum = multiply(sum, inverse(number(static_cast<double>(c.seq))));
}

void sequence_mean_grad(call& c) {
  const matrix &dy = c.in("dy"), &x = c.in("x");
  const std::int64_t each = share_of(c, x.is.rows);
  expect(dy.is.rows == c.rows && dy.is.cols == x.is.cols, "sequence_mean_grad: sizes do not fit");
  matrix& dx = c.out("dx", x.is.rows, x.is.cols);
  for (std::int64_t t = 0; t < x.is.rows; ++t)
    for (std::int64_t i = 0; i < x.is.cols; ++i)
      dx.row(t)[i] = multiply(dy.row(t / each)[i], inverse(number(static_cast<double>(c.seq))));
}

}  // namespace field::losses
