// SPDX-License-Identifier: Apache-2.0
// Which experts a token goes to, and with what weights: the largest of its scores.
// Source: Shazeer et al. 2017; Fedus et al. 2022; Jiang et al. 2024 (Mixtral); DeepSeek-AI 2024 (scores by the sigmoid).
#pragma once
#include <rankc/ops/elementwise.hpp>

namespace rankc {

namespace detail {
/// Scores of whole rows, of which the largest are taken. A gradient of the choice there is none.
constexpr void top_rule(complaint& c, types in, type* out, const op& o) {
  const type& logits = in[0];
  const dim& picks = o.with.first;
  if (!rules::rows(c, "the value", logits)) return;
  for (axis a : axes) {
    if (logits[a] == P) c.found(a, "the value", logits, rules::any_but_pending, rules::reduce_first);
    if (logits[a] == V(1))
      c.found(a, "the value", logits, "the scores of all experts on each rank (the largest are taken)", "all_gather it first");
    out[0][a] = out[1][a] = logits[a];
  }
  out[0].shape[1] = out[1].shape[1] = picks;
  if (!c.said && (picks.size < 1 || picks.size > logits.shape[1].size))
    c.begin() << "it takes " << picks.size << " of " << logits.shape[1].size << " experts; expected at least 1, and no more than there are";
}
constexpr void top_gradient(complaint& c, types in, type* out, const op&) {
  for (axis a : axes) out[0][a] = rules::linear_in(c, a, in[0], in.subspan(1));
}
constexpr void normalize_rule(complaint& c, types in, type* out, const op& o) {
  out[0] = in[0];
  if (!rules::rows(c, "the value", in[0])) return;
  for (axis a : axes) {
    if (in[0][a] == P) c.found(a, "the value", in[0], rules::any_but_pending, rules::reduce_first);
    if (in[0][a] == V(1)) c.found(a, "the value", in[0], "whole rows (their sum is taken)", "all_gather it first");
  }
  if (!c.said && !(o.with.number > 0 && o.with.number <= 1e6))
    c.begin() << "its rows are to add up to " << o.with.number << "; expected a positive number, 1 as a rule";
}
}  // namespace detail

namespace ops {
using namespace ports;

inline constexpr op_row softmax_top_grad{
    .name = "softmax_top_grad",
    .ports = {out("dlogits", "tokens experts"), in("dweights", "tokens picks").wide(), in("logits", "tokens experts"),
              in("chosen", "tokens picks").index()},
    .rule = detail::top_gradient,
    .flops = no_flops,
    .host = {"softmax_top_grad", "tokens experts picks"},
    .cuda = {"softmax_top_grad", "tokens experts picks"}};
inline constexpr op_row softmax_top{
    .name = "softmax_top",
    .ports = {out("weights", "tokens picks").wide(), out("chosen", "tokens picks").index(), in("logits", "tokens experts")},
    .rule = detail::top_rule,
    .dual = [](backward& b) { b.give("logits", b.apply(softmax_top_grad, {b.gradient("weights"), b["logits"], b["chosen"]})); },
    .flops = no_flops,
    .host = {"softmax_top", "tokens experts picks"},
    .cuda = {"softmax_top", "tokens experts picks"}};

inline constexpr op_row sigmoid_top_grad{
    .name = "sigmoid_top_grad",
    .ports = {out("dlogits", "tokens experts"), in("dweights", "tokens picks").wide(), in("logits", "tokens experts"),
              in("chosen", "tokens picks").index()},
    .rule = detail::top_gradient,
    .flops = no_flops,
    .host = {"sigmoid_top_grad", "tokens experts picks"},
    .cuda = {"sigmoid_top_grad", "tokens experts picks"}};
inline constexpr op_row sigmoid_top{
    .name = "sigmoid_top",
    .ports = {out("weights", "tokens picks").wide(), out("chosen", "tokens picks").index(), in("logits", "tokens experts")},
    .rule = detail::top_rule,
    .dual = [](backward& b) { b.give("logits", b.apply(sigmoid_top_grad, {b.gradient("weights"), b["logits"], b["chosen"]})); },
    .flops = no_flops,
    .host = {"sigmoid_top", "tokens experts picks"},
    .cuda = {"sigmoid_top", "tokens experts picks"}};

inline constexpr op_row normalize_grad{
    .name = "normalize_grad",
    .ports = {out("dx", "tokens width").wide(), in("dy", "tokens width").wide(), in("x", "tokens width").wide()},
    .rule = detail::top_gradient,
    .flops = no_flops,
    .host = {"normalize_grad", "tokens width number"},
    .cuda = {"normalize_grad", "tokens width number"},
    .number = "total"};
inline constexpr op_row normalize{
    .name = "normalize",
    .ports = {out("y", "tokens width").wide(), in("x", "tokens width").wide()},
    .rule = detail::normalize_rule,
    .dual = [](backward& b) { b.give("x", b.apply(normalize_grad, {b.gradient("y"), b["x"]})); },
    .flops = no_flops,
    .host = {"normalize", "tokens width number"},
    .cuda = {"normalize", "tokens width number"},
    .number = "total"};

}  // namespace ops

/// How a router weighs experts: the scores of which it takes the largest; whether their weights are made to add up; and to what,
/// or what they are multiplied by.
struct router_rule {
  enum score : unsigned char { softmax, sigmoid } scores = softmax;
  bool normalized = true;
  double scaling = 1;
  constexpr bool operator==(const router_rule&) const = default;
};

/// The experts of each token, and their weights, in f32 or better.
struct routing {
  value weights, chosen;
};

/// The largest `picks` scores of each row of logits, of equal ones those of lower experts, by falling score. Where weights are
/// normalised the softmax of all logits and then the largest is the softmax of the largest.
/// Shapes: logits (tokens, experts); weights and chosen (tokens, picks).
constexpr routing route(operand logits, int picks, const router_rule& by) {
  trace& t = *logits.v.in;
  const op_row& top = by.scores == router_rule::softmax ? ops::softmax_top : ops::sigmoid_top;
  const value weights = t.apply(top, {logits.v}, logits.from, {.with = {.first = dim{"picks", picks}}}), chosen = result(weights, 1);
  if (by.normalized) return {t.apply(ops::normalize, {weights}, logits.from, {.with = {.number = by.scaling}}), chosen};
  if (by.scaling == 1) return {weights, chosen};
  return {t.apply(ops::scale, {weights}, logits.from, {.with = {.number = by.scaling}}), chosen};
}

}  // namespace rankc
