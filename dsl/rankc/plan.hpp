// SPDX-License-Identifier: Apache-2.0
// The plan: model x dims x schedule x recipe x cluster, and all its rules. `diagnose()` and `data()` run the same
// functions, in the compiler and in the generator.
#pragma once
#include <rankc/models/layer.hpp>
#include <rankc/plan_data.hpp>

#include <boost/hana/for_each.hpp>
#include <limits>

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

constexpr int degree_of(const parallel_dims& d, axis a) {
  switch (a) {
    case axis::dp_replicate: return d.dp_replicate;
    case axis::dp_shard: return d.dp_shard;
    case axis::cp: return d.cp;
    case axis::tp: return d.tp;
  }
  return 1;
}

/// RC202: what is sharded must divide into equal shards of whole units.
constexpr void check_shards(report& out, const trace& t, const parallel_dims& d) {
  auto refused_before = [&](std::string_view text) {
    for (const diagnostic& said : out)
      if (said.text.view() == text) return true;
    return false;
  };
  auto check = [&](const type& v) {
    for (int i = 0; i < v.ndim; ++i) {
      int ways = 1;
      sentence over;
      for (axis a : axes)
        if (v[a] == V(i) && degree_of(d, a) > 1) {
          ways *= degree_of(d, a);
          over << (over.empty() ? "" : " * ") << name(a);
        }
      const dim& s = v.shape[i];
      if (ways == 1 || s.count() % ways == 0) continue;
      sentence text;
      text << s.name << "=" << s.count() << " does not divide by " << over.view() << "=" << ways << "; divisors of "
           << s.count() << " are ";
      list_divisors(text, s.count()) << ", multiples of " << ways << " are ";
      if (s.count() > ways) text << s.count() / ways * ways << " and ";
      text << (s.count() / ways + 1LL) * ways;
      if (!refused_before(text.view())) refuse(out, 202) << text.view();
    }
  };
  for (const weight_info& w : t.weights) check(w.holds);
  for (const type& v : t.values) check(v);
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

constexpr void check_batch(report& out, const parallel_dims& d, const auto& schedule, const training& recipe) {
  if (recipe.seq < 1 || recipe.global_batch < 1)
    refuse(out, 220) << "seq=" << recipe.seq << " and global_batch=" << recipe.global_batch << " must both be at least 1";
  if (schedule.microbatches < 1) {
    refuse(out, 301) << "microbatches=" << schedule.microbatches << "; a step has at least 1";
  } else if (d.dp_replicate > 0 && recipe.global_batch > 0) {
    const long long ways = static_cast<long long>(schedule.microbatches) * d.dp_replicate;
    const long long tokens = static_cast<long long>(recipe.global_batch) / schedule.microbatches * recipe.seq;
    if (tokens > std::numeric_limits<int>::max())
      refuse(out, 222) << "a microbatch has " << tokens << " tokens; they are counted up to "
                       << std::numeric_limits<int>::max() << ": take more microbatches than " << schedule.microbatches;
    if (recipe.global_batch % ways != 0)
      refuse(out, 221) << "global_batch=" << recipe.global_batch << " does not divide into " << schedule.microbatches
                       << " microbatches on " << d.dp_replicate << " data-parallel ranks; take a multiple of " << ways
                       << ": " << (recipe.global_batch / ways + 1) * ways;
  }
}

constexpr void check_pipeline(report& out, const parallel_dims& d, const auto& schedule, int blocks) {
  const int per_rank = schedule.stages_per_rank;
  if (per_rank < 1) {
    refuse(out, 301) << "the schedule has stages_per_rank=" << per_rank << "; a rank has at least 1";
    return;
  }
  if (d.pp < 1) return;
  if constexpr (requires { schedule.check(out, d.pp); }) schedule.check(out, d.pp);
  if (const int stages = count_stages(schedule, d.pp); stages > blocks) {
    sentence& s = refuse(out, 201) << "layers=" << blocks << " cannot fill " << stages << " stages; ";
    if (blocks >= per_rank) s << "pp can be at most " << blocks / per_rank;
    else s << "at least " << per_rank << " repeated layers are needed";
  }
}

}  // namespace detail

/// Check a plan given as values, all rules at once, and visit each of its layers as traced. Later rules assume
/// earlier ones: sizes before shapes.
constexpr void check_plan(report& out, const auto& model, const parallel_dims& given, const auto& schedule,
                          const training& recipe, const cluster& machines, auto visit) {
  const parallel_dims d = resolve(given);
  check_dims(out, given);
  model.check(out);
  detail::check_batch(out, d, schedule, recipe);
  detail::check_pipeline(out, d, schedule, detail::count_blocks(model));
  const long long ranks = static_cast<long long>(machines.nodes) * machines.ranks_per_node;
  if (ranks < given.world)
    refuse(out, 110) << "world=" << given.world << " is more than the cluster's " << machines.nodes << " nodes of "
                     << machines.ranks_per_node << " ranks; the world can be at most " << ranks;
  if (!out.empty()) return;

  const int rows = recipe.global_batch / (schedule.microbatches * d.dp_replicate);
  const dim tokens{"tokens", rows * d.dp_replicate * recipe.seq};
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
    detail::check_shards(out, t, d);
    if (!detail::is_repeat<std::decay_t<decltype(entry)>>) detail::check_tied(out, parameters, layer.name, t);
    visit(layer.name, detail::count_of(entry), detail::is_repeat<std::decay_t<decltype(entry)>>, t);
    x = t.values[t.result];
  });
  if (typed && x.ndim != 0) {
    complaint::put_shape(refuse(out, 212) << "the last layer's result is ", x);
    out.back().text << "; expected a loss: end the model with cross_entropy";
  }
  check_actions(out, collect(schedule, d.pp));
}

/// A plan as plain data, from values: what `plan<...>::data` gives, for plans that are made at run time.
inline plan_data make_plan(std::string name, const auto& model, const parallel_dims& given, const auto& schedule,
                           const training& recipe, const cluster& machines) {
  plan_data p{.name = std::move(name), .diagnostics = {}, .dims = resolve(given), .recipe = recipe, .machines = machines,
              .schedule = std::string(schedule.name), .actions = {}, .kinds = {}, .blocks_of_stage = {}};
  check_plan(p.diagnostics, model, given, schedule, recipe, machines,
             [&](std::string_view kind, int count, bool repeated, const trace& t) {
               p.kinds.push_back({std::string(kind), t, count, repeated});
             });
  if (!p.diagnostics.empty()) return p;
  p.actions = fuse_backward(collect(schedule, p.dims.pp));
  p.rows = recipe.global_batch / (schedule.microbatches * p.dims.dp_replicate);
  p.vocab_used = model.vocab_used ? model.vocab_used : model.vocab;
  const int stages = p.actions.stages(), blocks = detail::count_blocks(model);
  for (int s = 0; s < stages; ++s) p.blocks_of_stage.push_back(blocks / stages + (s < blocks % stages));
  return p;
}

/// A training plan. The model is taken by reference, so that errors and symbols carry its name, not its contents.
/// Errors: every RC1xx to RC3xx; all broken rules at once.
template <const auto& Model, parallel_dims Dims, auto Schedule, training Recipe, cluster Cluster>
struct plan {
  static constexpr parallel_dims dims = resolve(Dims);

  static constexpr report diagnose() {
    report out;
    check_plan(out, Model, Dims, Schedule, Recipe, Cluster, [](std::string_view, int, bool, const trace&) {});
    return out;
  }
  static plan_data data(std::string name) { return make_plan(std::move(name), Model, Dims, Schedule, Recipe, Cluster); }
};

}  // namespace rankc
