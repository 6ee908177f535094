// SPDX-License-Identifier: Apache-2.0
// Cross entropy over a vocabulary that may be sharded, in three ops: the row maxima, the sums of exponentials
// with the target's logit, and the loss. The loss is a mean over all tokens, or over the labels that are not
// ignored, which are those that are not negative. The second mean may have a weight for each label.
// Source: Megatron-LM (Shoeybi et al. 2019), vocab-parallel cross entropy.
#pragma once
#include <rankc/ops/conversions.hpp>
#include <rankc/recipe/training.hpp>

namespace rankc {

namespace ops {

/// The type of a per-token result that is computed from a rank's shard of the vocabulary: pending (P) on the
/// axis that shards the vocabulary.
constexpr void over_vocabulary(const type& logits, const type& like, type& out) {
  const dim last = out.shape[1];
  out = like;
  out.shape[1] = last;
  out.holds = element::wide;
  for (axis a : axes)
    if (logits[a] == V(1)) out[a] = P;
}

inline constexpr op_row row_max{.name = "row_max",
                                .ports = {out("top", "tokens 1").wide(), in("logits", "tokens vocab")},
                                .rule =
                                    [](complaint&, types in, type* out, const op&) {
                                      over_vocabulary(in[0], in[0], out[0]);
                                      for (axis a : axes) out[0].pending_max |= out[0][a] == P;
                                    },
                                .dual = stop_gradient,  // subtracting the maximum does not change the loss
                                .sizes = "tokens vocab"};
inline constexpr op_row exp_sums_grad{
    .name = "exp_sums_grad",
    .ports = {out("dlogits", "tokens vocab@first").over("logits"), in("dsums", "tokens 2").wide(),
              in("logits", "tokens vocab@first"), in("top", "tokens 1").wide(),
              in("targets", "tokens").index()},
    .rule =
        [](complaint& c, types in, type* out, const op&) {
          out[0] = in[1];
          for (axis a : axes)
            if (in[1][a] == V(1) && in[0][a] != R)
              c.found(a, "the gradient", in[0], "replicated (R)", "check the op's dual");
        },
    .sizes = "tokens vocab first"};
inline constexpr op_row exp_sums{
    .name = "exp_sums",
    .ports = {out("sums", "tokens 2").wide(), in("logits", "tokens vocab@first"),
              in("top", "tokens 1").wide(), in("targets", "tokens").index()},
    .rule = [](complaint&, types in, type* out, const op&) { over_vocabulary(in[0], in[1], out[0]); },
    .dual =
        [](backward& b) {
          b.give("logits", b.apply(exp_sums_grad, {b.gradient("sums"), b["logits"], b["top"], b["targets"]}));
        },
    .sizes = "tokens vocab first"};

inline constexpr op_row cross_entropy_grad{
    .name = "cross_entropy_grad",
    .ports = {out("dsums", "tokens 2").wide(), in("sums", "tokens 2").wide()},
    .rule = placement_rules::elementwise<false>,
    .sizes = "tokens number"};
inline constexpr op_row cross_entropy{
    .name = "cross_entropy",
    .ports = {sum("loss", ""), in("sums", "tokens 2").wide()},
    .rule =
        [](complaint&, types in, type* out, const op&) {
          for (axis a : axes) out[0][a] = in[0][a] == V(0) ? P : in[0][a];
        },
    .dual = [](backward& b) { b.give("sums", b.apply(cross_entropy_grad, {b["sums"]})); },
    .sizes = "tokens number"};

/// The number of labels that are not ignored. A layer that is traced on one device has the labels of the
/// whole step. On the ranks of a plan, the op belongs to the step and not to a layer.
inline constexpr op_row count_labels{.name = "count_labels",
                                     .ports = {sum("count", "1"), in("targets", "tokens").index()},
                                     .rule = [](complaint&, types, type*, const op&) {},
                                     .dual = stop_gradient,
                                     .sizes = "tokens"};
/// The sum of the weights of the labels that are not ignored. As count_labels, it belongs to a layer on one
/// device only.
inline constexpr op_row sum_weights{
    .name = "sum_weights",
    .ports = {sum("count", "1"), in("targets", "tokens").index(), in("weights", "tokens").wide()},
    .rule = [](complaint&, types, type*, const op&) {},
    .dual = stop_gradient,
    .sizes = "tokens"};
/// The op that computes what a step's loss is divided by: the number of labels, or the sum of their weights.
constexpr const op_row& count_row(const training& by) {
  return by.token_weights ? sum_weights : count_labels;
}
/// Adds minus infinity to the squared norm of the gradients if the number of labels, or the sum of their
/// weights, is 0. Then no rank applies the step. The op belongs to the step and not to a layer.
inline constexpr op_row skip_unlabeled{.name = "skip_unlabeled",
                                       .ports = {sum("total", ""), in("count", "1").wide()},
                                       .host = {"skip_unlabeled"},
                                       .cuda = {"skip_unlabeled"}};

/// Complains if a loss gets a count that is not that of the whole step.
constexpr void check_label_count(complaint& c, const type& count) {
  for (axis a : axes)
    if (count[a] != I)
      c.found(a, "the number of labels", count, "that of the whole step, the same on all ranks (I)",
              "call cross_entropy(logits, c)");
}
inline constexpr op_row masked_cross_entropy_grad{
    .name = "masked_cross_entropy_grad",
    .ports = {out("dsums", "tokens 2").wide(), in("sums", "tokens 2").wide(), in("targets", "tokens").index(),
              in("count", "1").wide()},
    .rule = [](complaint&, types in, type* out, const op&) { out[0] = in[0]; },
    .sizes = "tokens number"};
inline constexpr op_row masked_cross_entropy{
    .name = "masked_cross_entropy",
    .ports = {sum("loss", ""), in("sums", "tokens 2").wide(), in("targets", "tokens").index(),
              in("count", "1").wide()},
    .rule =
        [](complaint& c, types in, type* out, const op&) {
          check_label_count(c, in[2]);
          for (axis a : axes) out[0][a] = in[0][a] == V(0) ? P : in[0][a];
        },
    .dual =
        [](backward& b) {
          b.give("sums", b.apply(masked_cross_entropy_grad, {b["sums"], b["targets"], b["count"]}));
        },
    .sizes = "tokens number"};

/// Complains if a loss gets weights of other tokens than the targets'.
constexpr void check_token_weights(complaint& c, const type& targets, const type& weights) {
  for (axis a : axes)
    if (weights[a] != targets[a])
      c.found(a, "the weights", weights, "the placement of the targets", "call cross_entropy(logits, c)");
}
inline constexpr op_row weighted_cross_entropy_grad{
    .name = "weighted_cross_entropy_grad",
    .ports = {out("dsums", "tokens 2").wide(), in("sums", "tokens 2").wide(), in("targets", "tokens").index(),
              in("weights", "tokens").wide(), in("count", "1").wide()},
    .rule = [](complaint&, types in, type* out, const op&) { out[0] = in[0]; },
    .sizes = "tokens number"};
inline constexpr op_row weighted_cross_entropy{
    .name = "weighted_cross_entropy",
    .ports = {sum("loss", ""), in("sums", "tokens 2").wide(), in("targets", "tokens").index(),
              in("weights", "tokens").wide(), in("count", "1").wide()},
    .rule =
        [](complaint& c, types in, type* out, const op&) {
          check_token_weights(c, in[1], in[2]);
          check_label_count(c, in[3]);
          for (axis a : axes) out[0][a] = in[0][a] == V(0) ? P : in[0][a];
        },
    .dual =
        [](backward& b) {
          b.give("sums",
                 b.apply(weighted_cross_entropy_grad, {b["sums"], b["targets"], b["weights"], b["count"]}));
        },
    .sizes = "tokens number"};

}  // namespace ops

/// The sum of a token's exponentials and the logit of its target, over a vocabulary that may be sharded over
/// `over`.
/// Shapes: logits (tokens, vocab), targets (tokens); result (tokens, 2).
/// Errors: RC210, RC223.
constexpr value softmax_sums(operand logits, value targets, axis over) {
  trace& t = *targets.in;
  if (complaint c{"row_max", {}, logits.from}; !t.of(logits.v).bad) {
    placement_rules::logits(c, t.of(logits.v), t.of(targets), over);
    if (c.said) t.refuse(c);
  }
  value top = t.apply(ops::row_max, {logits.v}, logits.from);
  if (t.of(top)[over] == P) top = all_reduce_max({top, logits.from.file, logits.from.line}, over);
  value sums = t.apply(ops::exp_sums, {logits.v, top, targets}, logits.from);
  if (t.of(sums)[over] == P) sums = all_reduce({sums, logits.from.file, logits.from.line}, over);
  return sums;
}

/// Mean cross entropy; the vocabulary may be sharded over `over`.
/// Shapes: logits (tokens, vocab), targets (tokens).
/// Units: scale is 1 / tokens of the step.
/// Errors: RC210, RC223, RC260.
constexpr value cross_entropy(operand logits, value targets, axis over, double scale) {
  return targets.in->apply(ops::cross_entropy, {softmax_sums(logits, targets, over)}, logits.from,
                           {.with = {.factor = scale}});
}

/// The number of targets that are not negative.
/// Shapes: targets (tokens); result (1).
constexpr value count_labels(operand targets) {
  return targets.v.in->apply(ops::count_labels, {targets.v}, targets.from);
}

/// The sum of the weights of the targets that are not negative.
/// Shapes: targets and weights (tokens); result (1).
constexpr value sum_weights(operand targets, value weights) {
  return targets.v.in->apply(ops::sum_weights, {targets.v, weights}, targets.from);
}

/// Cross entropy of the targets that are not negative, summed over tokens and divided by their number in the
/// step.
/// Shapes: logits (tokens, vocab), targets (tokens), count (1).
/// Errors: RC210, RC223, RC260.
constexpr value masked_cross_entropy(operand logits, value targets, value count, axis over,
                                     double factor = 1) {
  return targets.in->apply(ops::masked_cross_entropy, {softmax_sums(logits, targets, over), targets, count},
                           logits.from, {.with = {.factor = factor}});
}

/// Cross entropy of the targets that are not negative times their weights, summed over tokens and divided by
/// the sum `count` of the weights in the step.
/// Shapes: logits (tokens, vocab), targets and weights (tokens), count (1).
/// Errors: RC210, RC223, RC260.
constexpr value weighted_cross_entropy(operand logits, value targets, value weights, value count, axis over,
                                       double factor = 1) {
  return targets.in->apply(ops::weighted_cross_entropy,
                           {softmax_sums(logits, targets, over), targets, weights, count}, logits.from,
                           {.with = {.factor = factor}});
}

}  // namespace rankc
