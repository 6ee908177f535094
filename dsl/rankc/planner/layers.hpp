// SPDX-License-Identifier: Apache-2.0
// What the layers of a model take on a rank, lowered once for all choices that have them alike.
#pragma once
#include <rankc/cost_model/step_time.hpp>
#include <rankc/plan/counted_plan.hpp>
#include <rankc/planner/choice.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace rankc::planner {

/// A layer's form, as one of the ranks has it that share out nothing but sequences and layers.
struct lowered_form {
  layer_form of;
  recomputation recompute{};
  bool in_halves = false;
  program::layer_program program{};
  program::layer_setting setting{};
  struct timed {
    int rows;
    cost_model::detail::stage_spent takes;
  };
  std::vector<timed> times{};
};

/// Elements of a layer's own parameters on a rank, before ranks share them out.
struct parameter_elements {
  double trained = 0, all = 0, trained_of_experts = 0, all_of_experts = 0;
};
constexpr parameter_elements elements_of(const std::vector<program::layer_parameter>& parameters) {
  parameter_elements e;
  for (const program::layer_parameter& w : parameters) {
    if (w.shared) continue;
    const auto elements = static_cast<double>(w.elements());
    (w.experts ? e.all_of_experts : e.all) += elements;
    if (w.trainable) (w.experts ? e.trained_of_experts : e.trained) += elements;
  }
  return e;
}

/// The layers of choices that differ in how ranks share out sequences, layers and, of dense weights, these.
struct alike_layers {
  /// How layers are split over so many pipeline ranks: what they cost.
  struct costed_stack {
    int pp;
    std::vector<costed_entry> entries;
  };
  parallel_dims dims{};
  int rows = 1;
  program::layer_setting setting{};
  std::vector<rankc::detail::traced_kind> kinds{};
  std::vector<std::vector<program::layer_parameter>> parameters{};  // of each kind
  std::vector<parameter_elements> elements{};
  std::vector<lowered_form> forms{};
  std::vector<costed_stack> stacks{};

  constexpr bool are_of(const parallel_dims& d, int rows_of_microbatch) const {
    return rows == rows_of_microbatch && dims.tp == d.tp && dims.cp == d.cp && dims.ulysses == d.ulysses && dims.ep == d.ep &&
           (dims.ep == 1 || (dims.pp == d.pp && dims.dp_replicate == d.dp_replicate));
  }
};

constexpr int rows_of(const question& q, const unscheduled& c) {
  return q.recipe.global_batch / c.microbatches / static_cast<int>(batch_ranks(c.dims));
}

/// Make it the same layer of so many times the sequences. Shapes: without experts.
constexpr void repeat_rows(program::layer_program& l, int times) {
  for (program::local_shape& s : l.shapes)
    for (int d = 0; d < s.ndim; ++d)
      if (s.dims[d].name == "tokens") s.dims[d].count *= times;
  for (program::nodes* list : {&l.forward, &l.backward})
    for (program::node& n : *list) n.rows *= times;
}

/// Lowers layers where they are asked for the first time.
template <class Model>
class layer_cache {
 public:
  constexpr layer_cache(const Model& model, const question& q) : model_(model), q_(q) {}

  /// Null where the choice breaks a rule, and none that is alike was asked for before.
  constexpr alike_layers* find(const choice& c) {
    const int rows = rows_of(q_, c);
    for (alike_layers& a : all_)
      if (a.are_of(c.dims, rows)) return &a;
    training recipe = q_.recipe;
    recipe.recompute = c.recompute;
    report out;
    rankc::detail::counted_plan p = rankc::detail::count_plan(out, model_, c.dims, c.schedule, recipe, q_.machines, {});
    if (!accepts(out)) return nullptr;
    alike_layers& a = all_.emplace_back();
    a.dims = p.dims, a.rows = rows, a.setting = rankc::detail::setting_for(p, target::cuda), a.kinds = std::move(p.kinds);
    for (std::size_t k = 0; k < a.kinds.size(); ++k) {
      a.parameters.push_back(program::local_parameters(a.kinds, k, a.dims));
      a.elements.push_back(elements_of(a.parameters.back()));
    }
    return &a;
  }

  /// The parameters of a kind, on a rank of a choice of these layers.
  constexpr std::vector<program::layer_parameter> parameters_of(const alike_layers& a, std::size_t kind, const parallel_dims& d) const {
    std::vector<program::layer_parameter> all;
    for (std::size_t w = 0; w < a.parameters[kind].size(); ++w) {
      all.push_back(program::local_parameter(a.kinds[kind].ops.weights[w], d));
      all.back().shared = a.parameters[kind][w].shared;
    }
    return all;
  }

  /// Shapes: of a choice of these layers; the result (stages).
  constexpr std::vector<int> split(alike_layers& a, const parallel_dims& d, const action_table& placed) const {
    for (const alike_layers::costed_stack& s : a.stacks)
      if (s.pp == d.pp) return split_layers(s.entries, placed, {});
    alike_layers::costed_stack& s = a.stacks.emplace_back();
    s.pp = d.pp;
    for (const auto& k : a.kinds) s.entries.push_back({cost_of(k.ops, d), k.count, k.repeated});
    return split_layers(s.entries, placed, {});
  }

  /// Shapes: one of the kinds of the layers. What is returned lasts until the next is lowered.
  constexpr lowered_form& lower(alike_layers& a, const layer_form& wanted, const recomputation& recompute, bool in_halves) const {
    const recomputation repeats = wanted.recomputes ? recompute : recomputation{};
    for (lowered_form& f : a.forms)
      if (f.of == wanted && f.recompute == repeats && f.in_halves == in_halves) return f;
    const auto kind = static_cast<std::size_t>(wanted.kind);
    program::layer_setting s = a.setting;
    s.recompute = repeats, s.splits_backward = in_halves, s.gives_dx = wanted.gives_dx;
    lowered_form& f = a.forms.emplace_back();
    f.of = wanted, f.recompute = repeats, f.in_halves = in_halves, f.setting = s;
    f.program = program::lower_layer(a.kinds[kind].ops, a.parameters[kind], s);
    return f;
  }

  /// What a form takes of so many times its sequences.
  constexpr cost_model::detail::stage_spent time(lowered_form& f, int times) const {
    for (const lowered_form::timed& t : f.times)
      if (t.rows == times) return t.takes;
    program::layer_program repeated = f.program;
    if (times > 1) repeat_rows(repeated, times);
    f.times.push_back({times, cost_model::detail::phases_of(*q_.gpu, repeated, f.setting, q_.machines.ranks_per_node)});
    return f.times.back().takes;
  }

 private:
  const Model& model_;
  const question& q_;
  std::vector<alike_layers> all_;
};

}  // namespace rankc::planner
