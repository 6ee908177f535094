// SPDX-License-Identifier: Apache-2.0
// RC260: a loss is the same mean on every layout. RC268, RC271: a loss of targets does not count ignored
// labels. RC272, RC273: a loss of targets has their weights.
#pragma once
#include <rankc/models/one_device.hpp>

#include <algorithm>
#include <vector>

namespace rankc::detail {

constexpr bool is_input(const trace& t, int value, const named_input& input) {
  for (const input_value& i : t.inputs)
    if (i.id == value && i.is == input) return true;
  return false;
}

/// The factors of a layer's losses, in the order of the losses.
constexpr std::vector<double> loss_factors(const trace& t) {
  std::vector<double> all;
  for (std::size_t i = 0; i < t.forward_ops; ++i)
    if (const int made = t.ops[i].out[0]; made >= 0 && t.values[made].ndim == 0)
      all.push_back(t.ops[i].number());
  return all;
}

/// The type of a layer's input on one device, for the whole batch of a step.
constexpr type on_one_device(type x, const layer_context& one) {
  const type tokens = token_type(one.tokens);
  x.shape[0] = x.shape[0].name == sequence_dim ? sequences_of(one) : one.tokens;
  for (axis a : axes) x[a] = tokens[a];
  return x;
}

/// RC260: each loss of a layer has the same factor as on one device. A mean over one rank's tokens would have
/// another factor.
constexpr void check_loss(report& out, const auto& layer, const trace& t, const layer_context& one,
                          const training& recipe) {
  const std::vector<double> here = loss_factors(t);
  if (here.empty()) return;
  const trace whole = trace_layer(layer, on_one_device(t.values[t.input], one), one, recipe);
  const std::vector<double> there = loss_factors(whole);
  if (!whole.said.empty() || here.size() != there.size()) return;
  for (std::size_t i = 0; i < here.size(); ++i)
    if (here[i] != there[i]) {
      refuse(out, 260) << "layer '" << layer.name << "' multiplies its loss by " << here[i]
                       << " on these ranks, and by " << there[i]
                       << " on one device; a loss is a mean over all tokens of a step on every layout: "
                          "multiply it by loss_scale of the layer_context, "
                       << one.loss_scale;
      return;
    }
}

/// Marks the values that depend only on labels: the targets, the results of exp_sums, which contain the
/// logits of the targets, and conversions of these.
constexpr std::vector<char> find_values_of_labels(const trace& t) {
  std::vector<char> found(t.values.size(), 0);
  for (const input_value& i : t.inputs)
    if (i.id >= 0 && i.is == inputs::targets) found[static_cast<std::size_t>(i.id)] = 1;
  for (std::size_t i = 0; i < t.forward_ops; ++i) {
    const op& o = t.ops[i];
    const int read = o.kind == &ops::exp_sums ? o.in[2] : o.in[0];
    const bool passes = o.kind == &ops::exp_sums || o.kind->converts != conversion::none;
    if (passes && read >= 0)
      found[static_cast<std::size_t>(o.out[0])] = found[static_cast<std::size_t>(read)];
  }
  return found;
}

constexpr bool reads(const trace& t, const op& o, const named_input& input) {
  return std::ranges::any_of(o.in, [&](int read) { return read >= 0 && is_input(t, read, input); });
}
constexpr bool reads_label_count(const trace& t) {
  for (std::size_t i = 0; i < t.forward_ops; ++i)
    if (reads(t, t.ops[i], inputs::label_count)) return true;
  return false;
}

/// The first op that computes a loss of labels without their number or, if they have weights, without their
/// weights; nullptr if there is none.
constexpr const op* find_loss_of_all_labels(const trace& t, bool have_weights) {
  const std::vector<char> is_of_labels = find_values_of_labels(t);
  for (std::size_t i = 0; i < t.forward_ops; ++i) {
    const op& o = t.ops[i];
    const bool reads_labels = std::ranges::any_of(
        o.in, [&](int read) { return read >= 0 && is_of_labels[static_cast<std::size_t>(read)] != 0; });
    const bool passes_them_on = is_of_labels[static_cast<std::size_t>(o.out[0])] != 0;
    const bool is_complete =
        reads(t, o, inputs::label_count) && (!have_weights || reads(t, o, inputs::weights));
    if (reads_labels && !passes_them_on && !is_complete) return &o;
  }
  return nullptr;
}

/// RC268, RC271: an op reads labels as if all counted.
constexpr void refuse_loss_of_all_labels(report& out, std::string_view layer, const op& o,
                                         const training& recipe) {
  if (o.kind == &ops::cross_entropy)
    refuse(out, 268) << "layer '" << layer << "' takes the mean of a loss over all tokens, and ignored_label="
                     << recipe.ignored_label
                     << " leaves some labels out; call cross_entropy(logits, c), which "
                     << "divides by the number of labels that count";
  else
    refuse(out, 271) << o.kind->name << " of layer '" << layer << "' reads labels as if all counted, and "
                     << "some are ignored_label=" << recipe.ignored_label
                     << "; give it label_count(c) too, call cross_entropy(logits, c), or leave out "
                        "ignored_label";
}

/// RC268, RC271, RC272: if labels are ignored or have weights, an op that reads labels also reads the number
/// of labels that count, or the weights and their sum.
constexpr void check_label_losses(report& out, std::string_view layer, const trace& t,
                                  const training& recipe) {
  if (!recipe.counts_labels() || !t.has_input(inputs::targets.name)) return;
  const op* const found = find_loss_of_all_labels(t, recipe.token_weights);
  if (found == nullptr) return;
  if (!recipe.token_weights) return refuse_loss_of_all_labels(out, layer, *found, recipe);
  refuse(out, 272) << found->kind->name << " of layer '" << layer
                   << "' reads labels without their weights, and token_weights=true; give it "
                      "token_weights(c) and label_count(c) too, call cross_entropy(logits, c), or leave out "
                      "token_weights";
}

/// RC271, RC273: if labels are ignored or have weights, some layer reads the number of labels that count, or
/// the sum of the weights. Nothing is reported if check_label_losses has refused a layer.
constexpr void check_label_count_is_read(report& out, const training& recipe, bool is_read) {
  if (!recipe.counts_labels() || is_read) return;
  for (const diagnostic& d : out)
    if (d.id == 268 || d.id == 271 || d.id == 272) return;
  if (recipe.token_weights)
    refuse(out, 273) << "token_weights=true, and no loss of the model is divided by the sum of the weights; "
                        "call cross_entropy(logits, c), give a loss of your own token_weights(c) and "
                        "label_count(c), or leave out token_weights";
  else
    refuse(out, 271) << "ignored_label=" << recipe.ignored_label
                     << ", and no loss of the model leaves labels out; call cross_entropy(logits, c), or "
                        "leave out ignored_label";
}

}  // namespace rankc::detail
