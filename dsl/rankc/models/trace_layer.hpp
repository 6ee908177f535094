// SPDX-License-Identifier: Apache-2.0
// Traces one layer forward and backward, with the types of its inputs.
#pragma once
#include <rankc/mesh/dims.hpp>
#include <rankc/models/layer.hpp>
#include <rankc/rules/values/batch.hpp>
#include <rankc/rules/values/model.hpp>
#include <rankc/rules/values/pipeline.hpp>

namespace rankc::detail {

template <class T>
inline constexpr bool is_repeat = false;
template <class T>
inline constexpr bool is_repeat<repeat<T>> = true;

constexpr int count_of(const auto& entry) {
  if constexpr (is_repeat<std::decay_t<decltype(entry)>>) return entry.count;
  else return 1;
}
constexpr const auto& layer_of(const auto& entry) {
  if constexpr (is_repeat<std::decay_t<decltype(entry)>>) return entry.layer;
  else return entry;
}

/// The type of token ids and targets: sharded along the tokens over the data-parallel axes and cp.
constexpr type token_type(const dim& tokens) {
  type t;
  t.ndim = 1;
  t.shape[0] = tokens;
  t.holds = element::index;
  t.is_input = true;
  for (axis a : axes)
    if (row(a).shares == part::sequences || row(a).shares == part::positions) t[a] = V(0);
  return t;
}

/// The dim of the sequences of a microbatch on all data-parallel ranks.
constexpr dim sequences_of(const layer_context& c) { return {sequence_dim, c.tokens.size / c.seq}; }

/// The type of an input of a step.
constexpr type type_of(const named_input& input, const layer_context& c) {
  if (input.computed) {
    type number;
    number.ndim = 1;
    number.shape[0] = dim{input.name, 1};
    number.holds = input.holds;
    return number;
  }
  type t = token_type(c.tokens);
  t.holds = input.holds;
  if (input.extent == input_extent::sequence) t.shape[0] = sequences_of(c);
  if (input.extent == input_extent::step) {
    t.shape[0] = input.features.size > 0 ? input.features : dim{"step", 1};
    for (axis a : axes) t[a] = I;
  } else if (input.features.size > 0) {
    t.shape[t.ndim++] = input.features;
  }
  for (axis a : axes)
    if (input.whole_sequences && row(a).shares == part::positions) t[a] = I;
  return t;
}
/// The type of the first layer's input, which is tokens or the first input that the model declares.
constexpr type first_type(const layer_context& c) { return type_of(c.inputs.front(), c); }

/// The inputs of a step: those that the language defines, and those that the model declares in `inputs()`.
/// The first one is the input of the first layer.
constexpr std::vector<named_input> inputs_of(const auto& model, const training& recipe) {
  std::vector<named_input> all;
  if (reads_tokens(model)) {
    all = {inputs::tokens, inputs::targets};
    if (recipe.has_documents()) all.push_back(inputs::starts);
    if (recipe.token_weights) all.push_back(inputs::weights);
    if (recipe.counts_labels()) all.push_back(inputs::label_count);
  }
  if constexpr (requires { model.inputs(); })
    for (const named_input& declared : model.inputs()) all.push_back(declared);
  return all;
}

/// The layout of a model's router statistics for `tokens` tokens. A microbatch has `of_microbatch` tokens, on
/// `ranks` data-parallel ranks.
constexpr router_statistics statistics_of(const auto& model, int tokens, int of_microbatch, int ranks) {
  router_statistics s;
  if constexpr (requires { model.routers(); }) s.of = model.routers();
  const bool local = s.of.losses.local;
  s.tokens = local ? of_microbatch / ranks : of_microbatch;
  s.groups = dim{local ? replicas : microbatches, tokens / s.tokens};
  return s;
}
/// The type of the statistics that a layer gets: partial sums over ranks that shard the tokens.
constexpr type statistics_type(const layer_context& c) {
  type t;
  t.ndim = 2;
  t.shape[0] = c.routers.groups;
  t.shape[1] = c.routers.of_layers();
  t.holds = element::wide;
  type tokens = token_type(c.tokens);
  if (c.sequence_parallel) tokens[region_axis] = V(0);
  for (axis a : axes) t[a] = sum_of_tokens(a, tokens, c.routers.groups);
  return t;
}

/// Adds the inputs of the step to a layer. The first of them is the first layer's own input `x`, and other
/// layers do not get it. On one device, a layer computes the numbers of the step itself.
constexpr void add_inputs(trace& t, value x, const layer_context& c) {
  const int first = t.of(x).is_input ? x.id : -1;
  for (const named_input& each : c.inputs) {
    if (each.computed && c.on_one_device) continue;
    t.inputs.push_back({each, t.inputs.empty() ? first : t.add(type_of(each, c)).id});
  }
}

/// Starts the router statistics as zeros in the first layer. They are an input of every other layer.
constexpr void add_statistics(trace& t, value x, const layer_context& c) {
  if (!c.routers.any()) return;
  const bool is_first = t.of(x).is_input;
  const value s = is_first ? t.make(ops::zeros, statistics_type(c)) : t.add(statistics_type(c));
  t.carried.push_back({.name = carried_statistics, .in = is_first ? -1 : s.id, .result = s.id});
}

/// Traces one layer forward and backward from the type of its input. The recipe decides which parameters are
/// trained. A layer that only reports a carried value gives the value a gradient of zeros.
template <class Layer>
constexpr trace trace_layer(const Layer& layer, const type& input, layer_context c, const training& recipe) {
  trace t;
  t.recipe = &recipe;
  const value x = t.add(input);
  t.input = x.id;
  c.traced = &t;
  add_inputs(t, x, c);
  add_statistics(t, x, c);
  t.derive_backward(layer.forward(t, x, c));
  for (const carried_value& each : t.carried) {
    const bool only_reports = each.in >= 0 && t.reported >= 0 && t.said.empty() && t.gradients[each.in] < 0;
    if (only_reports) t.gradients[each.in] = t.make(ops::zeros, cotangent(t.values[each.in])).id;
  }
  t.recipe = nullptr;
  return t;
}

/// The number of shards of dim i of a value.
constexpr int shards(const type& v, int i, const parallel_dims& d) {
  int ways = 1;
  for (axis a : axes) ways *= shards_over(v, i, a, d);
  return ways;
}

constexpr bool is_one_of(const op_row* row, std::initializer_list<const op_row*> rows) {
  for (const op_row* each : rows)
    if (each == row) return true;
  return false;
}

}  // namespace rankc::detail
