// SPDX-License-Identifier: Apache-2.0
// Routing: the top-k experts of each token and their weights. Experts are chosen by their scores, by scores
// plus a bias, or only among the best groups of experts.
// Source: Shazeer et al. 2017; Fedus et al. 2022; Jiang et al. 2024 (Mixtral); DeepSeek-AI 2024 (sigmoid
// scores, groups); Wang et al. 2024 (the bias).
#pragma once
#include <rankc/ops/elementwise.hpp>

namespace rankc {

namespace detail {
/// Complains unless each rank has the scores of all experts.
constexpr void whole_scores(complaint& c, const type& x) {
  if (!placement_rules::rows(c, "the value", x)) return;
  for (axis a : axes) {
    if (x[a] == P)
      c.found(a, "the value", x, placement_rules::any_but_pending, placement_rules::reduce_first);
    if (x[a] == V(1))
      c.found(a, "the value", x, "the scores of all experts on each rank (the largest are taken)",
              "all_gather it first");
  }
}
/// Complains unless the bias has one number for each expert and is the same on every rank.
constexpr void bias_of_scores(complaint& c, const type& scores, const type& bias) {
  placement_rules::per_feature(c, scores, bias);
  for (axis a : axes)
    if (bias[a] != I)
      c.found(a, "the bias", bias, "the same on every rank (I)", "declare it without a shard");
}
/// Top-k of whole rows. The choice itself has no gradient; the weights have one.
constexpr void top_rule(complaint& c, types in, type* out, const op& o) {
  const type& logits = in[0];
  const dim& picks = o.with.first;
  whole_scores(c, logits);
  for (axis a : axes) out[0][a] = out[1][a] = logits[a];
  out[0].shape[1] = out[1].shape[1] = picks;
  if (!c.said && (picks.size < 1 || picks.size > logits.shape[1].size))
    c.begin() << "it takes " << picks.size << " of " << logits.shape[1].size
              << " experts; expected at least 1, and no more than there are";
}
/// Top-k by scores that are given separately from the logits, with or without a bias.
constexpr void top_by_rule(complaint& c, types in, type* out, const op& o) {
  top_rule(c, in, out, o);
  for (axis a : axes)
    if (in[1][a] != in[0][a])
      c.found(a, "the scores", in[1], "the logits' placement", "make them of the logits");
  if (in.size() > 2) bias_of_scores(c, in[1], in[2]);
}
constexpr void scores_rule(complaint& c, types in, type* out, const op& o) {
  whole_scores(c, in[0]);
  for (axis a : axes) out[0][a] = in[0][a];
  out[0].shape[1] = o.with.first;
}
/// Keeps the scores of the best groups of each row, and returns which groups these are.
constexpr void groups_rule(complaint& c, types in, type* out, const op& o) {
  const type& scores = in[0];
  const dim& taken = o.with.first;
  whole_scores(c, scores);
  for (axis a : axes) out[0][a] = out[1][a] = scores[a];
  out[1].shape[1] = taken;
  if (in.size() > 1) bias_of_scores(c, scores, in[1]);
  const int groups = static_cast<int>(scores.shape[1].count()), of_group = scores.shape[1].unit;
  if (c.said) return;
  if (taken.size < 1 || taken.size > groups)
    c.begin() << "it takes " << taken.size << " of " << groups
              << " groups; expected at least 1, and no more than there are";
  else if (!(o.with.best >= 1 && o.with.best <= of_group) || o.with.best != static_cast<int>(o.with.best))
    c.begin() << "it scores a group by its " << o.with.best
              << " best experts; expected at least 1, and no more than the " << of_group << " of a group";
}
constexpr void count_rule(complaint&, types in, type* out, const op&) {
  for (axis a : axes) out[0][a] = in[0][a].k == placement::V ? P : I;
}
constexpr void top_gradient(complaint& c, types in, type* out, const op&) {
  for (axis a : axes) out[0][a] = placement_rules::linear_in(c, a, in[0], in.subspan(1));
}
constexpr void normalize_rule(complaint& c, types in, type* out, const op& o) {
  out[0] = in[0];
  if (!placement_rules::rows(c, "the value", in[0])) return;
  for (axis a : axes) {
    if (in[0][a] == P)
      c.found(a, "the value", in[0], placement_rules::any_but_pending, placement_rules::reduce_first);
    if (in[0][a] == V(1))
      c.found(a, "the value", in[0], "whole rows (their sum is taken)", "all_gather it first");
  }
  if (!c.said && !(o.with.total > 0 && o.with.total <= 1e6))
    c.begin() << "its rows are to add up to " << o.with.total << "; expected a positive number, 1 as a rule";
}
}  // namespace detail

namespace ops {

constexpr op_row chosen_gradient(std::string_view name) {
  return {.name = name,
          .ports = {out("dlogits", "tokens experts"), in("dweights", "tokens picks").wide(),
                    in("logits", "tokens experts"), in("chosen", "tokens picks").index()},
          .rule = detail::top_gradient,
          .sizes = "tokens experts picks"};
}
inline constexpr op_row softmax_top_grad = chosen_gradient("softmax_top_grad"),
                        sigmoid_top_grad = chosen_gradient("sigmoid_top_grad");

/// Counts how often each expert was chosen. The bias gets these counts in place of a gradient.
inline constexpr op_row count_choices{
    .name = "count_choices",
    .ports = {sum("dbias", "experts"), in("chosen", "tokens picks").index()},
    .rule = detail::count_rule,
    .sizes = "tokens picks experts"};

enum class choice : unsigned char { by_logits, by_scores, by_biased_scores };
/// The experts of the largest logits or scores. Their weights are computed from the logits.
template <const op_row& Gradient>
constexpr op_row chosen_experts(std::string_view name, choice by) {
  op_row row{.name = name,
             .ports = {out("weights", "tokens picks").wide(), out("chosen", "tokens picks").index(),
                       in("logits", "tokens experts")},
             .rule = by == choice::by_logits ? detail::top_rule : detail::top_by_rule,
             .dual =
                 [](backward& b) {
                   b.give("logits", b.apply(Gradient, {b.gradient("weights"), b["logits"], b["chosen"]}));
                   if (b.of.kind->find("bias") >= 0) b.contribute({"bias"}, count_choices, {b["chosen"]});
                 },
             .sizes = "tokens experts picks"};
  if (by != choice::by_logits) row.ports[3] = in("scores", "tokens experts").wide();
  if (by == choice::by_biased_scores) row.ports[4] = parameter("bias", "experts");
  return row;
}
inline constexpr op_row softmax_top = chosen_experts<softmax_top_grad>("softmax_top", choice::by_logits),
                        sigmoid_top = chosen_experts<sigmoid_top_grad>("sigmoid_top", choice::by_logits),
                        softmax_top_by =
                            chosen_experts<softmax_top_grad>("softmax_top_by", choice::by_scores),
                        sigmoid_top_by =
                            chosen_experts<sigmoid_top_grad>("sigmoid_top_by", choice::by_scores),
                        biased_softmax_top_by = chosen_experts<softmax_top_grad>("biased_softmax_top_by",
                                                                                 choice::by_biased_scores),
                        biased_sigmoid_top_by = chosen_experts<sigmoid_top_grad>("biased_sigmoid_top_by",
                                                                                 choice::by_biased_scores);

/// The scores by which experts are chosen. If experts are in groups, the dim's unit is the experts of one
/// group.
constexpr op_row expert_scores(std::string_view name) {
  return {.name = name,
          .ports = {out("scores", "tokens experts").wide(), in("logits", "tokens experts")},
          .rule = detail::scores_rule,
          .dual = stop_gradient,
          .sizes = "tokens experts"};
}
inline constexpr op_row softmax_scores = expert_scores("softmax_scores"),
                        sigmoid_scores = expert_scores("sigmoid_scores");

/// Keeps the scores of the best groups and lowers all others below them. A group is ranked by the sum of its
/// `best` largest scores. With a bias, groups are ranked by scores plus bias; the returned scores do not
/// include it.
constexpr op_row kept_groups(std::string_view name, bool biased) {
  op_row row{.name = name,
             .ports = {out("y", "tokens groups*each").wide(), out("kept", "tokens taken").index(),
                       in("scores", "tokens groups*each").wide()},
             .rule = detail::groups_rule,
             .dual = stop_gradient,
             .sizes = "tokens groups each taken number",
             .number = {"best", &attributes::best}};
  if (biased) row.ports[3] = parameter("bias", "groups*each");
  return row;
}
inline constexpr op_row keep_groups = kept_groups("keep_groups", false),
                        biased_keep_groups = kept_groups("biased_keep_groups", true);

inline constexpr number_attribute total{"total", &attributes::total};
inline constexpr op_row normalize_grad{
    .name = "normalize_grad",
    .ports = {out("dx", "tokens width").wide(), in("dy", "tokens width").wide(),
              in("x", "tokens width").wide()},
    .rule = detail::top_gradient,
    .sizes = "tokens width number",
    .number = total};
inline constexpr op_row normalize{
    .name = "normalize",
    .ports = {out("y", "tokens width").wide(), in("x", "tokens width").wide()},
    .rule = detail::normalize_rule,
    .dual = [](backward& b) { b.give("x", b.apply(normalize_grad, {b.gradient("y"), b["x"]})); },
    .sizes = "tokens width number",
    .number = total};

}  // namespace ops

/// The routing rule: which scores are compared, and how the weights are computed from them.
///   normalized   the weights of a token are scaled to add up to `scaling`; else they are multiplied by it
///   groups       number of equal groups of experts; a token's experts are from the `groups_taken` groups
///                whose `group_best` largest scores have the largest sums (0: no groups)
///   bias_rate    experts are chosen by scores plus a bias of each expert. The bias starts at 0. After a step
///                it rises by `bias_rate` if the expert was chosen less often than the mean, and falls by it
///                if more often (0: no bias)
/// Source: groups: DeepSeek-AI 2024 (DeepSeek-V3); the bias: Wang et al. 2024 (loss-free balancing).
struct router_rule {
  enum score : unsigned char { softmax, sigmoid } scores = softmax;
  bool normalized = true;
  double scaling = 1;
  int groups = 0, groups_taken = 0, group_best = 2;
  double bias_rate = 0;
  constexpr bool operator==(const router_rule&) const = default;
  constexpr bool has_bias() const { return bias_rate != 0; }
  /// True if the experts of the largest logits are chosen.
  constexpr bool is_by_logits() const { return groups == 0 && !has_bias(); }
};

/// The top-k experts of each token and their weights. The weights are f32 or wider.
struct routing {
  value weights, chosen;
};

namespace detail {
/// The dim of the experts, in units of one group.
constexpr dim in_groups(dim experts, const router_rule& by) {
  if (by.groups > 0 && experts.size % by.groups == 0) {
    experts.unit = experts.size / by.groups;
    experts.unit_name = "experts_of_group";
  }
  return experts;
}
/// The scores to choose by. With groups, only the best groups keep theirs.
constexpr value scores_to_choose_by(operand logits, const router_rule& by, value bias) {
  trace& t = *logits.v.in;
  const dim experts = in_groups(t.of(logits.v).shape[1], by);
  if (by.groups != 0 && experts.count() != by.groups) {
    complaint c{"route", {}, logits.from};
    c.begin() << experts.size << " experts do not divide into " << by.groups
              << " groups; expected groups of one size";
    t.refuse(c);
  }
  const op_row& kind = by.scores == router_rule::softmax ? ops::softmax_scores : ops::sigmoid_scores;
  const value scores = t.apply(kind, {logits.v}, logits.from, {.with = {.first = experts}});
  if (by.groups == 0) return scores;
  const op with{
      .with = {.best = static_cast<double>(by.group_best), .first = dim{"groups_taken", by.groups_taken}}};
  return by.has_bias() ? t.apply(ops::biased_keep_groups, {scores, bias}, logits.from, with)
                       : t.apply(ops::keep_groups, {scores}, logits.from, with);
}
/// Top-k by scores that are not the logits.
constexpr value top_by_scores(operand logits, dim picks, const router_rule& by, value bias) {
  trace& t = *logits.v.in;
  const value scores = scores_to_choose_by(logits, by, bias);
  const int of_taken =
      by.groups > 0 ? by.groups_taken * (t.of(logits.v).shape[1].size / by.groups) : picks.size;
  if (picks.size > of_taken) {
    complaint c{"route", {}, logits.from};
    c.begin() << "it takes " << picks.size << " experts, and the " << by.groups_taken
              << " groups that it takes have " << of_taken << "; expected no more";
    t.refuse(c);
  }
  const bool softmax = by.scores == router_rule::softmax;
  const op with{.with = {.first = picks}};
  if (by.has_bias())
    return t.apply(softmax ? ops::biased_softmax_top_by : ops::biased_sigmoid_top_by,
                   {logits.v, scores, bias}, logits.from, with);
  return t.apply(softmax ? ops::softmax_top_by : ops::sigmoid_top_by, {logits.v, scores}, logits.from, with);
}
}  // namespace detail

/// Declares the bias of a router, one number for each expert. The update rule compares choice counts with
/// their mean, tokens * picks / experts of a step.
/// Shapes: result (experts).
/// Units: loss_scale is 1 / tokens of a step.
/// Errors: RC210.
constexpr value bias_of_choice(trace& t, std::string_view name, dim experts, int picks, const router_rule& by,
                               double loss_scale, const char* file = __builtin_FILE(),
                               int line = __builtin_LINE()) {
  const double tokens = static_cast<double>(static_cast<long long>(1 / loss_scale + 0.5));
  return t.parameter(name, detail::in_groups(experts, by),
                     load_balance{by.bias_rate, tokens * picks / experts.size}, file, line);
}

/// Chooses the top-k experts of each token (k = `picks`), sorted by falling score; ties go to the lower
/// index. If weights are normalized, the softmax over the chosen logits equals the softmax over all logits,
/// normalized over the chosen ones. `bias` is given if the rule has one.
/// Shapes: logits (tokens, experts), bias (experts); weights and chosen (tokens, picks).
/// Errors: RC210.
constexpr routing route(operand logits, int picks, const router_rule& by, value bias = {}) {
  trace& t = *logits.v.in;
  const dim taken{"picks", picks};
  const op_row& top = by.scores == router_rule::softmax ? ops::softmax_top : ops::sigmoid_top;
  const value weights = by.is_by_logits() ? t.apply(top, {logits.v}, logits.from, {.with = {.first = taken}})
                                          : detail::top_by_scores(logits, taken, by, bias),
              chosen = result(weights, 1);
  if (by.normalized)
    return {t.apply(ops::normalize, {weights}, logits.from, {.with = {.total = by.scaling}}), chosen};
  if (by.scaling == 1) return {weights, chosen};
  return {t.apply(ops::scale, {weights}, logits.from, {.with = {.factor = by.scaling}}), chosen};
}

}  // namespace rankc
