// SPDX-License-Identifier: Apache-2.0
// The ops of a layer, in order, for each way to shard it over tensor-parallel ranks.
#pragma once
#include "attention.hpp"
#include "elementwise.hpp"

namespace rankc::published_model {

/// How a layer is sharded. `tp1d`: weights and heads over tp1, and the sequence between blocks. `seqp`: the
/// sequence over tp2 too. `tp2d`: linear layers by SUMMA over tp1 x tp2, attention as in seqp.
enum class strategy { tp1d, tp2d, seqp };

/// Searches use fused attention. `recomputed` is for tp1d, `summa` for tp2d.
enum class attention_form { fused, unfused, recomputed, summa };

/// A rank's part of a layer. `panels` is for tp2d.
struct layer_split {
  strategy by = strategy::tp1d;
  int tp1 = 1, tp2 = 1, microbatch = 1, panels = 1;
};

namespace detail {

/// The ops after the sum over tp1: a bias, dropout and the layer norm. The Python's modules differ in
/// `bias_rows` x `bias_width`.
template <typename Visit>
constexpr void end_block(const setting& on, const layer_split& s, std::array<std::string_view, 3> names,
                         double bias_rows, double bias_width, Visit& visit) {
  const int b = s.microbatch, l = on.model.l / s.tp2, e = on.model.e;
  const int shard = on.model.l / (s.tp1 * s.tp2);
  const bool as_summed = on.fix.biases;  // D8
  visit(bias(on, names[0], as_summed ? double(b) * shard : bias_rows, as_summed ? e : bias_width));
  visit(dropout(names[1], double(b) * shard * e));
  visit(layer_norm(names[2], b, l, e, s.tp1));
}

/// The same if both axes shard the result.
template <typename Visit>
constexpr void end_block_2d(const setting& on, const layer_split& s, std::array<std::string_view, 3> names,
                            Visit& visit) {
  const transformer& m = on.model;
  const double rows = double(s.microbatch) * (m.l / s.tp2), width = m.e / s.tp1;
  visit(bias(on, names[0], rows, width));
  visit(dropout(names[1], rows * width));
  visit(layer_norm_2d(on, names[2], s.microbatch, m.l, m.e, s.tp1, s.tp2));
}

template <typename Visit>
constexpr void visit_scores(const setting& on, const layer_split& s, attention_form form, Visit& visit) {
  const transformer& m = on.model;
  const int b = s.microbatch;
  if (form == attention_form::summa) {
    const double rows = double(b) * m.h * (m.l / s.tp2), columns = m.l / s.tp1;
    visit(logits_summa(on, "logits", b, s.tp1, s.tp2, s.panels));
    visit(softmax_2d("softmax", rows, columns, s.tp1));
    visit(dropout("dpr_at", rows * columns));
    visit(attend_summa(on, "attend", b, s.tp1, s.tp2, s.panels));
    return;
  }
  const attention_shard a(m, b, s.tp1, s.tp2);
  if (form == attention_form::fused) return visit(fused_attention("fusedla", a));
  const bool again = form == attention_form::recomputed;
  const auto visit_again = [&](op x, bool stores) {
    x.recomputed = again;
    if (again && !stores) x.stored = 0;
    visit(x);
  };
  visit_again(logits("logits", a), true);
  visit_again(softmax("softmax", a.heads * a.queries, a.l), false);
  visit_again(dropout("dpr_at", a.scores()), false);
  visit(attend("attend", a, !again));
}

}  // namespace detail

/// Calls `visit` with each op of the MLP.
template <typename Visit>
constexpr void visit_mlp(const setting& on, const layer_split& s, Visit&& visit) {
  const transformer& m = on.model;
  const double rows = double(s.microbatch) * (m.l / s.tp2), hidden = m.f / s.tp1;
  const bool summa = s.by == strategy::tp2d;
  visit(summa ? linear_summa(on, "fc1", rows, m.e, m.f, s.tp1, s.tp2, s.panels)
              : linear("fc1", rows, m.e, m.f, 1, s.tp1));
  visit(bias(on, "fc1-bias", rows, hidden));
  visit(activation("act1", rows * hidden));
  visit(dropout("dpr1", rows * hidden));
  visit(summa ? linear_summa(on, "fc2", rows, m.f, m.e, s.tp1, s.tp2, s.panels)
              : linear("fc2", rows, m.f, m.e, s.tp1, 1));
  if (summa) return detail::end_block_2d(on, s, {"fc2-bias", "dpr2", "ln1"}, visit);
  const int bias_ranks = s.by == strategy::tp1d ? 1 : s.tp1;
  detail::end_block(on, s, {"fc2-bias", "dpr2", "ln1"}, double(s.microbatch) * (m.l / s.tp2 / bias_ranks),
                    m.e, visit);
}

/// Calls `visit` with each op of the attention block.
template <typename Visit>
constexpr void visit_attention(const setting& on, const layer_split& s, attention_form form, Visit&& visit) {
  const transformer& m = on.model;
  const double rows = double(s.microbatch) * (m.l / s.tp2);
  const bool summa = s.by == strategy::tp2d;
  visit(summa ? linear_summa(on, "qkv", rows, m.e, 3 * m.e, s.tp1, s.tp2, s.panels)
              : linear("qkv", rows, m.e, 3 * m.e, 1, s.tp1));
  detail::visit_scores(on, s, form, visit);
  visit(summa ? linear_summa(on, "vproj", rows, m.e, m.e, s.tp1, s.tp2, s.panels)
              : linear("vproj", rows, m.e, m.e, s.tp1, 1));
  if (summa) return detail::end_block_2d(on, s, {"vproj-bias", "dpr_v", "ln2"}, visit);
  const int bias_width = s.by == strategy::tp1d ? m.e : m.e / s.tp1;
  detail::end_block(on, s, {"vproj-bias", "dpr_v", "ln2"}, rows, bias_width, visit);
}

}  // namespace rankc::published_model
