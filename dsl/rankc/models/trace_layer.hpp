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
  for (axis a : axes)
    if (row(a).shares == part::sequences || row(a).shares == part::positions) t[a] = V(0);
  return t;
}

/// The type of documents' starts: a cp rank has the starts of all tokens of its sequences.
constexpr type starts_type(const dim& tokens) {
  type t = token_type(tokens);
  for (axis a : axes)
    if (row(a).shares == part::positions) t[a] = I;
  return t;
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

/// Traces one layer forward and backward from the type of its input. The recipe decides which parameters are
/// trained.
template <class Layer>
constexpr trace trace_layer(const Layer& layer, const type& input, layer_context c, const training& recipe) {
  trace t;
  t.recipe = &recipe;
  const value x = t.add(input);
  t.input = x.id;
  c.targets = t.add(token_type(c.tokens));
  if (recipe.has_documents()) {
    c.starts = t.add(starts_type(c.tokens));
    t.starts = c.starts.id;
  }
  if (c.routers.any()) {
    const bool is_first = input.holds == element::index;
    const value s = is_first ? t.make(ops::zeros, statistics_type(c)) : t.add(statistics_type(c));
    t.hand_on_statistics(s);
    if (!is_first) t.statistics = s.id;
  }
  t.derive_backward(layer.forward(t, x, c));
  const bool counts_alone =
      t.statistics >= 0 && t.routers_kept >= 0 && t.said.empty() && t.gradients[t.statistics] < 0;
  if (counts_alone) t.gradients[t.statistics] = t.make(ops::zeros, cotangent(t.values[t.statistics])).id;
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
