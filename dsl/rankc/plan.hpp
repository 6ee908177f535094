// SPDX-License-Identifier: Apache-2.0
// All rules of a plan, model x dims x schedule x recipe x cluster, by the same functions in the compiler and in the
// generator.
#pragma once
#include <rankc/models/layer.hpp>
#include <rankc/mesh/layout.hpp>
#include <rankc/recipe.hpp>
#include <rankc/rules/batch.hpp>
#include <rankc/rules/cluster.hpp>
#include <rankc/rules/dims.hpp>
#include <rankc/rules/model.hpp>
#include <rankc/rules/pipeline.hpp>
#include <rankc/rules/recipe.hpp>
#include <rankc/schedule/check.hpp>
#include <rankc/schedule/complete.hpp>

#include <boost/hana/for_each.hpp>

namespace rankc {

namespace detail {

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

/// The type of token ids and targets: whole sequences distributed over the data-parallel axes.
constexpr type token_type(const dim& tokens) {
  type t;
  t.ndim = 1;
  t.shape[0] = tokens;
  t.holds = element::index;
  t[axis::dp_replicate] = t[axis::dp_shard] = t[axis::cp] = V(0);
  return t;
}

/// Trace one layer forward and backward from the type of its input.
template <class Layer>
constexpr trace trace_layer(const Layer& layer, const type& input, layer_context c) {
  trace t;
  const value x = t.add(input);
  t.input = x.id;
  c.targets = t.add(token_type(c.tokens));
  t.derive_backward(layer.forward(t, x, c));
  return t;
}

constexpr int parallel_dims::*degree_of(axis a) {
  switch (a) {
    case axis::dp_replicate: return &parallel_dims::dp_replicate;
    case axis::dp_shard: return &parallel_dims::dp_shard;
    case axis::cp: return &parallel_dims::cp;
    case axis::tp: break;
  }
  return &parallel_dims::tp;
}

/// The shards that dim i of a value is split into.
constexpr int shards(const type& v, int i, const parallel_dims& d) {
  int ways = 1;
  for (axis a : axes)
    if (v[a] == V(i)) ways *= d.*degree_of(a);
  return ways;
}

/// RC202: what is sharded must divide into equal shards of whole units.
constexpr void check_shards(report& out, const trace& t, const parallel_dims& given, const layer_context& c) {
  const parallel_dims d = resolve(given);
  auto refused_before = [&](std::string_view text) {
    for (const diagnostic& said : out)
      if (said.text.view() == text) return true;
    return false;
  };
  auto refuse_dim = [&](const type& v, int i) {
    const dim& s = v.shape[i];
    const int ways = shards(v, i, d);
    sentence text, over;
    offers found;
    for (axis a : axes) {
      if (v[a] != V(i) || d.*degree_of(a) == 1) continue;
      over << (over.empty() ? "" : " * ") << name(a);
      found.add_degree(given, degree_of(a), find_nearest_degree(given, degree_of(a), false, [&](const parallel_dims& x) {
                         return s.count() % shards(v, i, x) == 0;
                       }));
    }
    // Nobody writes a number of tokens: it follows from the length of a sequence.
    const bool of_sequences = s.name == c.tokens.name;
    const int each = of_sequences ? s.count() / c.seq : 1;
    found.add(of_sequences ? "seq" : s.name, find_nearest(s.count() / each, std::numeric_limits<int>::max() / each - 1,
                                                          [&](int n) { return n * each % ways == 0; }));
    put_shards(text, s.name, s.count(), over.view(), ways) << found.view();
    if (!refused_before(text.view())) refuse(out, 202) << text.view();
  };
  auto check_dims_of = [&](const type& v) {
    for (int i = 0; i < v.ndim; ++i)
      if (v.shape[i].count() % shards(v, i, d)) refuse_dim(v, i);
  };
  for (const weight_info& w : t.weights) check_dims_of(w.holds);
  for (const type& v : t.values) check_dims_of(v);
}

/// RC211: a layer that cannot follow itself.
constexpr void refuse_repeat(report& out, std::string_view layer, const type& x, const type& y) {
  sentence& s = refuse(out, 211) << "layer '" << layer << "' is repeated, but ";
  if (!rules::same_shape(x, y) || x.holds != y.holds) {
    complaint::put_shape(s << "it makes ", y);
    complaint::put_shape(s << " of ", x);
    s << "; its result must be like its input";
    return;
  }
  const char* separator = "";
  for (axis a : axes)
    if (x[a] != y[a]) {
      complaint::put(s << separator << "its result is ", y, y[a]);
      complaint::put(s << " over " << name(a) << " and its input ", x, x[a]);
      separator = ", ";
    }
  s << "; end it with the conversion that gives the placement of its input";
}

/// RC210, RC211, RC213: what one layer does wrong. Says whether the next can be traced.
constexpr bool check_layer(report& out, const trace& t, std::string_view layer, int count) {
  for (const sentence& s : t.said) refuse(out, 210) << s.view();
  if (!t.said.empty()) return false;
  const type &x = t.values[t.input], &y = t.values[t.result];
  if (x.holds != element::index && t.gradients[t.input] < 0) {
    refuse(out, 213) << "the result of layer '" << layer << "' does not depend on its input, so that the layers before it "
                     << "are not trained; use the input";
    return false;
  }
  if (count > 1 && y != x) refuse_repeat(out, layer, x, y);
  return count == 1 || y == x;
}

/// RC214: two layers that stand alone and have a parameter of one name have it in common: one tensor, one gradient.
constexpr void check_tied(report& out, std::vector<weight_info>& earlier, std::string_view layer, const trace& t) {
  int tied = 0;
  for (const weight_info& w : t.weights)
    for (const weight_info& e : earlier) {
      if (e.name != w.name) continue;
      ++tied;
      if (e.holds == w.holds && e.gradient == w.gradient) continue;
      complaint::put_shape(refuse(out, 214) << "parameter '" << w.name << "' of layer '" << layer << "' is ", w.holds);
      complaint::put_shape(out.back().text << " and that of an earlier layer ", e.holds);
      out.back().text << "; tied parameters have one shape and one placement: give this one another name, or make them alike";
    }
  if (tied > 1)
    refuse(out, 214) << "layer '" << layer << "' has " << tied << " parameters in common with earlier layers; it can have 1: "
                     << "give the others names of their own";
  earlier.insert(earlier.end(), t.weights.begin(), t.weights.end());
}

constexpr int count_blocks(const auto& model) {
  int n = 0;
  boost::hana::for_each(model.stack(), [&](const auto& e) {
    if (is_repeat<std::decay_t<decltype(e)>>) n += count_of(e);
  });
  return n;
}

/// RC103: degrees that may be declared but that no pass lowers yet.
constexpr void check_lowered(report& out, const parallel_dims& d) {
  for (const auto& a : all_degrees)
    if (d.*a.degree > 1 && a.degree != &parallel_dims::pp && a.degree != &parallel_dims::dp_replicate && a.degree != &parallel_dims::tp)
      refuse(out, 103) << a.name << "=" << d.*a.degree
                       << " is not lowered in this version; dp_replicate, tp and pp are: set " << a.name << "=1";
}

/// The model's own judgement of its sizes, and the rules of those that it offers.
constexpr void check_sizes_of(report& out, const auto& model, const parallel_dims& given, const training& recipe) {
  const std::size_t before = out.size();
  model.check(out);
  if constexpr (requires { model.sizes(); }) {
    if (out.size() > before) return;  // what is no size has no divisors
    model_sizes sizes = model.sizes();
    if (resolve(given).cp > 1) sizes.seq = recipe.seq;  // else sequences are sharded end to end, as tokens
    sizes.tied_embeddings = false;                      // lowered: nothing is needed of the user
    check_model(out, sizes, given);
  }
}

/// What a schedule refuses by itself, and its stages. (Where a stage is on two ranks, there are fewer than ranks hold.)
constexpr void check_schedule(report& out, const auto& schedule, const parallel_dims& given, int blocks,
                              std::span<const int> stage_layers) {
  const int pp = resolve(given).pp;
  const std::size_t before = out.size();
  if constexpr (requires { schedule.check(out, pp); })
    if (pp >= 1) schedule.check(out, pp);
  if (out.size() > before) return;  // what is no schedule has no stages
  if (const int stages = pp >= 1 ? count_stages(schedule, pp) : 1; pp >= 1 && stages < pp) {
    refuse(out, 301) << "the schedule has " << stages << (stages == 1 ? " stage" : " stages") << " (stages_per_rank="
                     << schedule.stages_per_rank << ") for pp=" << pp << " ranks; each rank has at least 1 stage";
    return;
  }
  check_pipeline(out, blocks, given, pp >= 1 ? count_stages(schedule, pp) / pp : schedule.stages_per_rank, stage_layers);
}

}  // namespace detail

/// Check a plan given as values, all rules at once, and visit each of its layers as traced. Later rules assume
/// earlier ones: sizes before shapes.
constexpr void check_plan(report& out, const auto& model, const parallel_dims& given, const auto& schedule,
                          const training& recipe, const cluster& machines, auto visit,
                          std::span<const int> stage_layers = {}) {
  const parallel_dims d = resolve(given);
  if (check_dims(out, given)) detail::check_lowered(out, d);
  detail::check_sizes_of(out, model, given, recipe);
  check_batch(out, {.global_batch = recipe.global_batch, .microbatches = schedule.microbatches, .seq = recipe.seq}, given);
  check_recipe(out, recipe);
  detail::check_schedule(out, schedule, given, detail::count_blocks(model), stage_layers);
  check_cluster(out, machines, given);
  if (!accepts(out)) return;

  const int ranks = static_cast<int>(batch_ranks(d)), rows = recipe.global_batch / schedule.microbatches / ranks;
  const dim tokens{"tokens", rows * ranks * recipe.seq};
  const layer_context c{tokens, rows, recipe.seq, d.sequence_parallel,
                        1.0 / (static_cast<double>(recipe.global_batch) * recipe.seq), {}};
  type x = detail::token_type(tokens);
  std::vector<weight_info> parameters;  // of layers that stand alone
  bool typed = true;                    // so far; what follows a mistake is a consequence
  boost::hana::for_each(model.stack(), [&](const auto& entry) {
    if (!typed) return;
    const auto& layer = detail::layer_of(entry);
    const trace t = detail::trace_layer(layer, x, c);
    typed = detail::check_layer(out, t, layer.name, detail::count_of(entry));
    if (!typed) return;
    detail::check_shards(out, t, given, c);
    if (!detail::is_repeat<std::decay_t<decltype(entry)>>) detail::check_tied(out, parameters, layer.name, t);
    visit(layer.name, detail::count_of(entry), detail::is_repeat<std::decay_t<decltype(entry)>>, t);
    x = t.values[t.result];
  });
  if (typed && x.ndim != 0) {
    complaint::put_shape(refuse(out, 212) << "the last layer's result is ", x);
    out.back().text << "; expected a loss: end the model with cross_entropy";
  }
  check_actions(out, complete(schedule, d.pp));
}

}  // namespace rankc
