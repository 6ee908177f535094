// SPDX-License-Identifier: Apache-2.0
// Routers over the field: the order of experts and their weights are drawn. A softmax weight is keyed by the
// logits of all experts, a sigmoid weight by its own logit. Sums over routers are drawn too, keyed by the
// logits of all experts (scores and squares), except for the choices, which are counted.
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

/// The experts of a token, in descending order of logits.
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

/// A weight's gradient contributes to the gradients of all logits that determine the weight.
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

// ---- choices by drawn scores instead of logits; a drawn score is never 0, the score of an expert that
// cannot be chosen

void take_scores(call& c, auto key_of_score) {
  const matrix& logits = c.in("logits");
  matrix& scores = c.out("scores");
  expect(scores.is.rows == logits.is.rows && scores.is.cols == logits.is.cols,
         "scores of other tokens or experts");
  for (std::int64_t t = 0; t < logits.is.rows; ++t)
    for (std::int64_t e = 0; e < logits.is.cols; ++e)
      scores.row(t)[e] =
          draw_nonzero(mix(mix(key_of_score(logits, t, e), key_of("score")), static_cast<std::uint64_t>(e)));
}

/// A token's scores, with a bias if there is one.
std::vector<element> biased(const element* scores, std::int64_t experts, const matrix* bias) {
  std::vector<element> all(scores, scores + experts);
  if (!bias) return all;
  expect(bias->is.size() == experts, "a bias of other experts");
  for (std::size_t e = 0; e < all.size(); ++e)
    if (all[e] != 0) all[e] = draw_nonzero(mix(mix(key_of("biased"), all[e]), bias->of[e]));
  return all;
}
/// Experts in descending order of scores; those that cannot be chosen come last.
std::vector<std::int64_t> by_score(const std::vector<element>& scores) {
  std::vector<std::int64_t> all = by_logit(scores.data(), static_cast<std::int64_t>(scores.size()));
  std::stable_partition(all.begin(), all.end(),
                        [&](std::int64_t e) { return scores[static_cast<std::size_t>(e)] != 0; });
  return all;
}

/// Keep the groups whose elements, drawn from their best experts' scores, come first.
void keep(call& c, const matrix* bias) {
  const matrix& scores = c.in("scores");
  matrix &y = c.out("y"), &kept = c.out("kept");
  const std::int64_t experts = scores.is.cols, each = y.is.unit, groups = experts / each;
  const auto best = static_cast<std::size_t>(c.number);
  expect(y.is.rows == scores.is.rows && y.is.cols == experts && experts % each == 0 &&
             kept.is.cols <= groups && c.number >= 1 && static_cast<std::int64_t>(best) <= each,
         "groups of other experts, or more than there are");
  for (std::int64_t t = 0; t < scores.is.rows; ++t) {
    const std::vector<element> all = biased(scores.row(t), experts, bias);
    std::vector<element> of_groups;
    for (std::int64_t g = 0; g < groups; ++g) {
      const std::vector<element> own(all.begin() + g * each, all.begin() + (g + 1) * each);
      std::uint64_t key = key_of("group");
      const std::vector<std::int64_t> order = by_score(own);
      for (std::size_t i = 0; i < best; ++i) key = mix(key, own[static_cast<std::size_t>(order[i])]);
      of_groups.push_back(draw_nonzero(key));
    }
    const std::vector<std::int64_t> order = by_score(of_groups);
    for (std::int64_t i = 0; i < kept.is.cols; ++i) {
      const std::int64_t g = order[static_cast<std::size_t>(i)];
      kept.row(t)[i] = static_cast<element>(g);
      std::copy_n(scores.row(t) + g * each, each, y.row(t) + g * each);
    }
  }
}

void take_top_by(call& c, const matrix* bias, auto key_of_score) {
  const matrix &logits = c.in("logits"), &scores = c.in("scores");
  matrix &weights = c.out("weights"), &chosen = c.out("chosen");
  expect(weights.is.rows == logits.is.rows && weights.is.cols <= logits.is.cols &&
             scores.is.size() == logits.is.size() && chosen.is.rows == weights.is.rows &&
             chosen.is.cols == weights.is.cols,
         "a router of other tokens, or of more picks than experts");
  for (std::int64_t t = 0; t < logits.is.rows; ++t) {
    const std::vector<std::int64_t> experts = by_score(biased(scores.row(t), scores.is.cols, bias));
    for (std::int64_t j = 0; j < weights.is.cols; ++j) {
      const std::int64_t e = experts[static_cast<std::size_t>(j)];
      chosen.row(t)[j] = static_cast<element>(e);
      weights.row(t)[j] = draw_nonzero(mix(key_of_score(logits, t, e), static_cast<std::uint64_t>(e)));
    }
  }
}

/// The key of a token's score for an expert, or of its square, which does not belong to an expert.
std::uint64_t key_of_sum(std::string_view what, const matrix& logits, std::int64_t t, std::int64_t e) {
  return mix(field::key_of(key_of(what), logits.row(t), logits.is.cols), static_cast<std::uint64_t>(e));
}
constexpr std::string_view square = "square of a logarithm";

/// The number of tokens in a group; groups are equally large.
std::int64_t tokens_of_group(const matrix& logits, std::int64_t groups) {
  expect(groups > 0 && logits.is.rows % groups == 0, "tokens that do not divide into groups");
  return logits.is.rows / groups;
}

void sum_up(call& c, std::string_view score) {
  const matrix &logits = c.in("logits"), &chosen = c.in("chosen");
  const std::int64_t experts = logits.is.cols, groups = c.wanted("own").rows,
                     tokens = tokens_of_group(logits, groups);
  expect(chosen.is.rows == logits.is.rows, "choices of other tokens");
  matrix& own = c.out("own", groups, 3 * experts, experts);
  for (std::int64_t t = 0; t < logits.is.rows; ++t) {
    element *choices = own.row(t / tokens), *scores = choices + experts, *squares = scores + experts;
    for (std::int64_t j = 0; j < chosen.is.cols; ++j) {
      const element e = chosen.row(t)[j];
      expect(e < static_cast<element>(experts), "a choice that is no expert");
      choices[e] = add(choices[e], 1);
    }
    for (std::int64_t e = 0; e < experts; ++e)
      scores[e] = add(scores[e], draw(key_of_sum(score, logits, t, e)));
    squares[0] = add(squares[0], draw(key_of_sum(square, logits, t, 0)));
  }
}

/// A sum's gradient contributes to the gradients of all logits of a token.
void sum_up_back(call& c, std::string_view score) {
  const matrix &down = c.in("down"), &logits = c.in("logits");
  const std::int64_t experts = logits.is.cols, tokens = tokens_of_group(logits, down.is.rows);
  expect(down.is.cols == 3 * experts, "a router's gradient of other experts");
  matrix& dlogits = c.out("dlogits", logits.is.rows, experts);
  for (std::int64_t t = 0; t < logits.is.rows; ++t) {
    const element *of_scores = down.row(t / tokens) + experts, *of_squares = of_scores + experts;
    const auto give = [&](element gradient, std::uint64_t key) {
      for (std::int64_t i = 0; i < experts; ++i) {
        const element slope = draw(mix(mix(key, key_of("logit'")), static_cast<std::uint64_t>(i)));
        dlogits.row(t)[i] = add(dlogits.row(t)[i], multiply(gradient, slope));
      }
    };
    for (std::int64_t e = 0; e < experts; ++e) give(of_scores[e], key_of_sum(score, logits, t, e));
    give(of_squares[0], key_of_sum(square, logits, t, 0));
  }
}

}  // namespace

void softmax_top(call& c) { take_top(c, key_of_all); }
void softmax_top_grad(call& c) { take_top_back(c, true, key_of_all); }
void sigmoid_top(call& c) { take_top(c, key_of_own); }
void sigmoid_top_grad(call& c) { take_top_back(c, false, key_of_own); }

void softmax_scores(call& c) { take_scores(c, key_of_all); }
void sigmoid_scores(call& c) { take_scores(c, key_of_own); }
void keep_groups(call& c) { keep(c, nullptr); }
void biased_keep_groups(call& c) { keep(c, &c.in("bias")); }
void softmax_top_by(call& c) { take_top_by(c, nullptr, key_of_all); }
void sigmoid_top_by(call& c) { take_top_by(c, nullptr, key_of_own); }
void biased_softmax_top_by(call& c) { take_top_by(c, &c.in("bias"), key_of_all); }
void biased_sigmoid_top_by(call& c) { take_top_by(c, &c.in("bias"), key_of_own); }

void softmax_statistics(call& c) { sum_up(c, "softmax score"); }
void softmax_statistics_grad(call& c) { sum_up_back(c, "softmax score"); }
void sigmoid_statistics(call& c) { sum_up(c, "sigmoid score"); }
void sigmoid_statistics_grad(call& c) { sum_up_back(c, "sigmoid score"); }

}  // namespace field::routers
