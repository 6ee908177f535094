// SPDX-License-Identifier: Apache-2.0
// Cross entropy over a vocabulary that may be sharded, in three ops: the row maxima, the sums of exponentials
// with the target's logit, and the loss.
// Source: Megatron-LM (Shoeybi et al. 2019), vocab-parallel cross entropy.
#pragma once
#include <rankc/ops/conversions.hpp>

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

}  // namespace ops

/// Mean cross entropy; the vocabulary may be sharded over `over`.
/// Shapes: logits (tokens, vocab), targets (tokens).
/// Units: scale is 1 / tokens of the step.
/// Errors: RC210, RC223, RC260.
constexpr value cross_entropy(operand logits, value targets, axis over, double scale) {
  trace& t = *targets.in;
  if (complaint c{"row_max", {}, logits.from}; !t.of(logits.v).bad) {
    placement_rules::logits(c, t.of(logits.v), t.of(targets), over);
    if (c.said) t.refuse(c);
  }
  value top = t.apply(ops::row_max, {logits.v}, logits.from);
  if (t.of(top)[over] == P) top = all_reduce_max({top, logits.from.file, logits.from.line}, over);
  value sums = t.apply(ops::exp_sums, {logits.v, top, targets}, logits.from);
  if (t.of(sums)[over] == P) sums = all_reduce({sums, logits.from.file, logits.from.line}, over);
  return t.apply(ops::cross_entropy, {sums}, logits.from, {.with = {.factor = scale}});
}

}  // namespace rankc
