// SPDX-License-Identifier: Apache-2.0
// The plan: model x dims x schedule x recipe x cluster, and all its rules. `diagnose()` and `data()` run the same
// functions, in the compiler and in the generator.
#pragma once
#include <rankc/models/layer.hpp>
#include <rankc/plan_data.hpp>

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
      std::string_view last_axis;
      for (axis a : axes)
        if (v[a] == V(i) && degree_of(d, a) > 1) {
          ways *= degree_of(d, a);
          last_axis = name(a);
        }
      const dim& s = v.shape[i];
      if (ways == 1 || s.count() % ways == 0) continue;
      sentence text;
      text << s.name << "=" << s.count() << " does not divide into " << ways << " shards over " << last_axis << "; it divides into ";
      list_divisors(text, s.count());
      if (!refused_before(text.view())) refuse(out, 202) << text.view();
    }
  };
  for (const weight_info& w : t.weights) check(w.holds);
  for (const type& v : t.values) check(v);
}

}  // namespace detail

/// A training plan. The model is taken by reference, so that errors and symbols carry its name, not its contents.
/// Errors: every RC1xx to RC3xx; all broken rules at once.
template <const auto& Model, parallel_dims Dims, auto Schedule, training Recipe, cluster Cluster>
struct plan {
  static constexpr parallel_dims dims = resolve(Dims);

  static constexpr report diagnose() {
    report out;
    walk(out, [](std::string_view, int, bool, const trace&) {});
    return out;
  }

  /// Everything, as plain data.
  static plan_data data(std::string name) {
    plan_data p{.name = std::move(name), .diagnostics = {}, .dims = dims, .recipe = Recipe, .machines = Cluster,
                .schedule = std::string(Schedule.name), .actions = {}, .kinds = {}, .blocks_of_stage = {}};
    walk(p.diagnostics, [&](std::string_view kind, int count, bool repeated, const trace& t) {
      p.kinds.push_back({std::string(kind), t, count, repeated});
    });
    if (!p.diagnostics.empty()) return p;
    p.actions = collect(Schedule, dims.pp);
    p.rows = rows();
    p.vocab_used = Model.vocab_used ? Model.vocab_used : Model.vocab;
    const int stages = dims.pp * Schedule.stages_per_rank(), blocks = count_blocks();
    for (int s = 0; s < stages; ++s) p.blocks_of_stage.push_back(blocks / stages + (s < blocks % stages));
    return p;
  }

 private:
  static constexpr int rows() { return Recipe.global_batch / (Schedule.microbatches * dims.dp_replicate); }

  static constexpr int count_blocks() {
    int n = 0;
    boost::hana::for_each(Model.stack(), [&](const auto& e) {
      if (detail::is_repeat<std::decay_t<decltype(e)>>) n += detail::count_of(e);
    });
    return n;
  }

  /// Check everything and visit each traced layer. Later rules assume earlier ones: sizes before shapes.
  static constexpr void walk(report& out, auto visit) {
    check_dims(out, Dims);
    Model.check(out);
    check_batch(out);
    check_pipeline(out);
    if (!out.empty()) return;

    const dim tokens{"tokens", rows() * dims.dp_replicate * Recipe.seq};
    const layer_context c{tokens, rows(), Recipe.seq, dims.sequence_parallel,
                          1.0 / (static_cast<double>(Recipe.global_batch) * Recipe.seq), {}};
    type x = detail::token_type(tokens);
    boost::hana::for_each(Model.stack(), [&](const auto& entry) {
      const auto& layer = detail::layer_of(entry);
      const trace t = detail::trace_layer(layer, x, c);
      for (const sentence& s : t.said) refuse(out, 210) << s.view();
      if (!out.empty() && !t.said.empty()) return;
      const type& y = t.values[t.result];
      if (detail::count_of(entry) > 1 && y != x)
        refuse(out, 211) << "layer '" << layer.name << "' is repeated, but its result has another type than its input";
      detail::check_shards(out, t, dims);
      visit(layer.name, detail::count_of(entry), detail::is_repeat<std::decay_t<decltype(entry)>>, t);
      x = y;
    });
    if (!out.empty()) return;
    if (x.ndim != 0) refuse(out, 212) << "the last layer's result is not a loss; end the model with cross_entropy";
    check_actions(out, collect(Schedule, dims.pp));
  }

  static constexpr void check_batch(report& out) {
    if (Recipe.seq < 1 || Recipe.global_batch < 1)
      refuse(out, 220) << "seq=" << Recipe.seq << " and global_batch=" << Recipe.global_batch << " must both be at least 1";
    if (Schedule.microbatches < 1) {
      refuse(out, 301) << "microbatches=" << Schedule.microbatches << "; a step has at least 1";
    } else if (const int ways = Schedule.microbatches * dims.dp_replicate;
               dims.dp_replicate > 0 && Recipe.global_batch % ways != 0) {
      refuse(out, 221) << "global_batch=" << Recipe.global_batch << " does not divide into " << Schedule.microbatches
                       << " microbatches on " << dims.dp_replicate << " data-parallel ranks; take a multiple of " << ways << ": "
                       << (Recipe.global_batch / ways + 1) * ways;
    }
    if (Cluster.nodes * Cluster.ranks_per_node < Dims.world)
      refuse(out, 110) << "world=" << Dims.world << " is more than the cluster has: " << Cluster.nodes << " nodes of "
                       << Cluster.ranks_per_node << " ranks";
  }

  static constexpr void check_pipeline(report& out) {
    const int stages = dims.pp * Schedule.stages_per_rank(), blocks = count_blocks();
    if (stages > blocks)
      refuse(out, 201) << "layers=" << blocks << " cannot fill " << stages << " stages; pp can be at most "
                       << blocks / Schedule.stages_per_rank();
  }
};

}  // namespace rankc
