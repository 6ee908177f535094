// SPDX-License-Identifier: Apache-2.0
// RC260: a loss is the same mean on every layout. RC268: a loss of targets leaves out the ignored labels.
#pragma once
#include <rankc/models/one_device.hpp>

#include <vector>

namespace rankc::detail {

constexpr bool is_input(const trace& t, int value, const named_input& input) {
  for (const input_value& i : t.inputs)
    if (i.id == value && i.is == input) return true;
  return false;
}

/// What the losses of a layer are multiplied by, in their order.
constexpr std::vector<double> loss_factors(const trace& t) {
  std::vector<double> all;
  for (std::size_t i = 0; i < t.forward_ops; ++i)
    if (const int made = t.ops[i].out[0]; made >= 0 && t.values[made].ndim == 0)
      all.push_back(t.ops[i].number());
  return all;
}

/// What a layer reads, on one device with the batch of a step.
constexpr type on_one_device(type x, const layer_context& one) {
  const type tokens = token_type(one.tokens);
  x.shape[0] = one.tokens;
  for (axis a : axes) x[a] = tokens[a];
  return x;
}

/// RC260: the factors of a layer's losses are those that it takes on one device: a mean over a rank's own
/// tokens is another.
constexpr void check_loss(report& out, const auto& layer, const trace& t, const layer_context& one,
                          const training& recipe) {
  const std::vector<double> here = loss_factors(t);
  if (here.empty()) return;
  const trace whole = trace_layer(layer, on_one_device(t.values[t.input], one), one, recipe);
  const std::vector<double> there = loss_factors(whole);
  if (!whole.said.empty() || here.size() != there.size()) return;
  for (std::size_t i = 0; i < here.size(); ++i)
    if (here[i] != there[i]) {
      refuse(out, 260) << "layer '" << layer.name << "' takes a loss times " << here[i]
                       << " on these ranks, and times " << there[i]
                       << " on one device; a loss is a mean over all tokens of a step on every layout: take "
                          "it times loss_scale of the "
                       << "layer_context, " << one.loss_scale;
      return;
    }
}

/// RC268: if the recipe ignores labels, no loss of the targets is a mean over all tokens.
constexpr void check_ignored_labels(report& out, std::string_view layer, const trace& t,
                                    const training& recipe) {
  if (!recipe.ignores_labels() || !t.has_input(inputs::targets.name)) return;
  std::vector<char> is_sum_of_targets(t.values.size(), 0);
  for (std::size_t i = 0; i < t.forward_ops; ++i) {
    const op& o = t.ops[i];
    const bool reads_targets = o.kind == &ops::exp_sums && is_input(t, o.in[2], inputs::targets),
               passes_sums = o.kind->converts != conversion::none &&
                             is_sum_of_targets[static_cast<std::size_t>(o.in[0])] != 0;
    if (reads_targets || passes_sums) is_sum_of_targets[static_cast<std::size_t>(o.out[0])] = 1;
    if (o.kind != &ops::cross_entropy || is_sum_of_targets[static_cast<std::size_t>(o.in[0])] == 0) continue;
    refuse(out, 268) << "layer '" << layer << "' takes the mean of a loss over all tokens, and ignored_label="
                     << recipe.ignored_label
                     << " leaves some labels out; call cross_entropy(logits, c), which "
                     << "divides by the number of labels that count";
    return;
  }
}

}  // namespace rankc::detail
