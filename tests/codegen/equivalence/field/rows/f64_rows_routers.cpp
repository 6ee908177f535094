// SPDX-License-Identifier: Apache-2.0
// Routers in f64: they call the kernels of the host runtime.
#include "f64_kernels.hpp"
#include "rows.hpp"

namespace field::routers {

namespace {

void take_top(call& c, auto kernel) {
  const matrix& logits = c.in("logits");
  matrix &weights = c.out("weights"), &chosen = c.out("chosen");
  expect(weights.is.rows == logits.is.rows && weights.is.cols <= logits.is.cols &&
             chosen.is.size() == weights.is.size(),
         "a router of other tokens, or of more picks than experts");
  kernel_memory m;
  const rankc::runtime::at to = m.room(weights), to_chosen = m.room(chosen), from = m.put(logits);
  kernel(m.lane(), to, to_chosen, from, whole(logits.is.rows), whole(logits.is.cols), whole(weights.is.cols));
  m.take(to, weights);
  m.take_ids(to_chosen, chosen);
}

void take_top_back(call& c, auto kernel) {
  const matrix &dweights = c.in("dweights"), &logits = c.in("logits"), &chosen = c.in("chosen");
  expect(dweights.is.rows == logits.is.rows && chosen.is.size() == dweights.is.size(),
         "a router's gradient of other tokens");
  for (element e : chosen.of)
    expect(e >= 0 && e < static_cast<element>(logits.is.cols), "a choice of no expert");
  matrix& dlogits = c.out("dlogits", logits.is.rows, logits.is.cols);
  kernel_memory m;
  const rankc::runtime::at to = m.room(dlogits), at_dweights = m.put(dweights), at_logits = m.put(logits),
                           at_chosen = m.put_ids(chosen);
  kernel(m.lane(), to, at_dweights, at_logits, at_chosen, whole(logits.is.rows), whole(logits.is.cols),
         whole(dweights.is.cols));
  m.take(to, dlogits);
}

void take_scores(call& c, auto kernel) {
  const matrix& logits = c.in("logits");
  matrix& scores = c.out("scores");
  expect(scores.is.rows == logits.is.rows && scores.is.cols == logits.is.cols,
         "scores of other tokens or experts");
  kernel_memory m;
  const rankc::runtime::at to = m.room(scores), from = m.put(logits);
  kernel(m.lane(), to, from, whole(logits.is.rows), whole(logits.is.cols));
  m.take(to, scores);
}

/// `bias...`: the bias, if the kernel takes one.
void keep(call& c, auto kernel, const auto&... bias) {
  const matrix& scores = c.in("scores");
  matrix &y = c.out("y"), &kept = c.out("kept");
  const std::int64_t each = y.is.unit, groups = scores.is.cols / each;
  expect(y.is.rows == scores.is.rows && y.is.cols == scores.is.cols && scores.is.cols % each == 0 &&
             kept.is.cols <= groups && c.number >= 1 && c.number <= static_cast<double>(each),
         "groups of other experts, or more than there are");
  kernel_memory m;
  const rankc::runtime::at to = m.room(y), to_kept = m.room(kept), from = m.put(scores);
  const auto call_with = [&](const auto&... at_bias) {
    kernel(m.lane(), to, to_kept, from, at_bias..., whole(scores.is.rows), whole(groups), whole(each),
           whole(kept.is.cols), c.number);
  };
  call_with(m.put(bias)...);
  m.take(to, y);
  m.take_ids(to_kept, kept);
}

void take_top_by(call& c, auto kernel, const auto&... bias) {
  const matrix &logits = c.in("logits"), &scores = c.in("scores");
  matrix &weights = c.out("weights"), &chosen = c.out("chosen");
  expect(weights.is.rows == logits.is.rows && weights.is.cols <= logits.is.cols &&
             scores.is.size() == logits.is.size() && chosen.is.size() == weights.is.size(),
         "a router of other tokens, or of more picks than experts");
  kernel_memory m;
  const rankc::runtime::at to = m.room(weights), to_chosen = m.room(chosen), from = m.put(logits),
                           by = m.put(scores);
  const auto call_with = [&](const auto&... at_bias) {
    kernel(m.lane(), to, to_chosen, from, by, at_bias..., whole(logits.is.rows), whole(logits.is.cols),
           whole(weights.is.cols));
  };
  call_with(m.put(bias)...);
  m.take(to, weights);
  m.take_ids(to_chosen, chosen);
}

/// The logits of a group's tokens.
matrix rows_of_group(const matrix& logits, std::int64_t g, std::int64_t groups) {
  expect(groups > 0 && logits.is.rows % groups == 0, "tokens that do not divide into groups");
  const std::int64_t tokens = logits.is.rows / groups;
  matrix m(extent{tokens, logits.is.cols});
  std::copy_n(logits.row(g * tokens), m.of.size(), m.of.begin());
  return m;
}
matrix row_of_group(const matrix& m, std::int64_t g) {
  matrix one(extent{1, m.is.cols});
  std::copy_n(m.row(g), m.is.cols, one.of.begin());
  return one;
}

void sum_up(call& c, auto kernel) {
  const matrix &logits = c.in("logits"), &chosen = c.in("chosen");
  const std::int64_t experts = logits.is.cols, groups = c.wanted("own").rows;
  matrix& own = c.out("own", groups, 3 * experts, experts);
  for (std::int64_t g = 0; g < groups; ++g) {
    matrix one(extent{1, own.is.cols});
    const matrix of_group = rows_of_group(logits, g, groups);
    kernel_memory m;
    const rankc::runtime::at to = m.room(one), scratch = m.room(one), from = m.put(of_group),
                             by = m.put_ids(rows_of_group(chosen, g, groups));
    kernel(m.lane(), to, scratch, from, by, whole(of_group.is.rows), whole(experts), whole(chosen.is.cols));
    m.take(to, one);
    std::copy(one.of.begin(), one.of.end(), own.row(g));
  }
}

void sum_up_back(call& c, auto kernel) {
  const matrix &down = c.in("down"), &logits = c.in("logits");
  const std::int64_t experts = logits.is.cols;
  expect(down.is.cols == 3 * experts, "a router's gradient of other experts");
  matrix& dlogits = c.out("dlogits", logits.is.rows, experts);
  for (std::int64_t g = 0; g < down.is.rows; ++g) {
    const matrix of_group = rows_of_group(logits, g, down.is.rows);
    matrix made(of_group.is);
    kernel_memory m;
    const rankc::runtime::at to = m.room(made), at_down = m.put(row_of_group(down, g)),
                             from = m.put(of_group);
    kernel(m.lane(), to, at_down, from, whole(of_group.is.rows), whole(experts));
    m.take(to, made);
    std::copy(made.of.begin(), made.of.end(), dlogits.row(g * of_group.is.rows));
  }
}

}  // namespace

void softmax_top(call& c) {
  take_top(c, [](const auto&... operands) { host::softmax_top<double>(operands...); });
}
void softmax_top_grad(call& c) {
  take_top_back(c, [](const auto&... operands) { host::softmax_top_grad<double>(operands...); });
}
void sigmoid_top(call& c) {
  take_top(c, [](const auto&... operands) { host::sigmoid_top<double>(operands...); });
}
void sigmoid_top_grad(call& c) {
  take_top_back(c, [](const auto&... operands) { host::sigmoid_top_grad<double>(operands...); });
}

void softmax_scores(call& c) {
  take_scores(c, [](const auto&... operands) { host::softmax_scores<double>(operands...); });
}
void sigmoid_scores(call& c) {
  take_scores(c, [](const auto&... operands) { host::sigmoid_scores<double>(operands...); });
}
void keep_groups(call& c) {
  keep(c, [](const auto&... operands) { host::keep_groups<double>(operands...); });
}
void biased_keep_groups(call& c) {
  keep(c, [](const auto&... operands) { host::biased_keep_groups<double>(operands...); }, c.in("bias"));
}
void softmax_top_by(call& c) {
  take_top_by(c, [](const auto&... operands) { host::softmax_top_by<double>(operands...); });
}
void sigmoid_top_by(call& c) {
  take_top_by(c, [](const auto&... operands) { host::sigmoid_top_by<double>(operands...); });
}
void biased_softmax_top_by(call& c) {
  take_top_by(
      c, [](const auto&... operands) { host::biased_softmax_top_by<double>(operands...); }, c.in("bias"));
}
void biased_sigmoid_top_by(call& c) {
  take_top_by(
      c, [](const auto&... operands) { host::biased_sigmoid_top_by<double>(operands...); }, c.in("bias"));
}

void softmax_statistics(call& c) {
  sum_up(c, [](const auto&... operands) { host::softmax_statistics<double>(operands...); });
}
void softmax_statistics_grad(call& c) {
  sum_up_back(c, [](const auto&... operands) { host::softmax_statistics_grad<double>(operands...); });
}
void sigmoid_statistics(call& c) {
  sum_up(c, [](const auto&... operands) { host::sigmoid_statistics<double>(operands...); });
}
void sigmoid_statistics_grad(call& c) {
  sum_up_back(c, [](const auto&... operands) { host::sigmoid_statistics_grad<double>(operands...); });
}

}  // namespace field::routers
