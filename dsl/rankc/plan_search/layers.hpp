// SPDX-License-Identifier: Apache-2.0
// The layers of a model on a rank, lowered once for all choices with equal layers.
#pragma once
#include <rankc/cost_model/step_time.hpp>
#include <rankc/memory/worst_rank.hpp>
#include <rankc/plan/make_plan_data.hpp>
#include <rankc/plan_search/choice.hpp>
#include <rankc/plan_search/form_bytes.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

namespace rankc::plan_search {

/// A lowered layer's form, shared by all ranks that differ only in their sequences and layers.
struct lowered_form {
  layer_form form;
  recomputation recompute{};
  bool in_halves = false;
  lowering::layer_program program{};
  lowering::layer_setting setting{};
  /// The time and memory of the form for `times` its sequences.
  struct repeated {
    int times;
    cost_model::detail::stage_spent takes;
    form_bytes needs;
  };
  std::vector<repeated> of{};
};

/// The elements of a layer's own parameters on a rank, before data-parallel ranks shard them.
struct parameter_elements {
  double trained = 0, all = 0, trained_of_experts = 0, all_of_experts = 0;
};
constexpr parameter_elements elements_of(const std::vector<lowering::layer_parameter>& parameters) {
  parameter_elements e;
  for (const lowering::layer_parameter& w : parameters) {
    if (w.shared) continue;
    const auto elements = static_cast<double>(w.elements());
    (w.experts ? e.all_of_experts : e.all) += elements;
    if (w.trainable) (w.experts ? e.trained_of_experts : e.trained) += elements;
  }
  return e;
}

consteval rankc::detail::list_of<axis> list_shaping_axes() {
  rankc::detail::list_of<axis> out;
  for (const axis_row& r : axis_rows)
    if (shapes_layers(r)) out.add(r.id);
  return out;
}
inline constexpr rankc::detail::list_of<axis> shaping_axes = list_shaping_axes();
/// True if two dims have the same degrees for all axes on which a layer's program depends.
constexpr bool have_layers_alike(const parallel_dims& a, const parallel_dims& b) {
  for (axis each : shaping_axes)
    if (a.*row(each).degree != b.*row(each).degree) return false;
  return true;
}

/// Lowered layers that choices share. The choices have equal degrees for all axes on which layers depend, and
/// equal rows. They may differ in the sharding of sequences, layers and dense weights. But if weight shards
/// need padding, they must be the same, because padding changes which neighbours are packed.
struct alike_layers {
  /// The cost of the layers for a split over `pp` pipeline ranks.
  struct costed_stack {
    int pp;
    std::vector<costed_entry> entries;
  };
  parallel_dims dims{};
  int rows = 1, divisor = 0;  // divisor of the rows of all dense weights
  bool sum_over_batch = false;
  lowering::layer_setting setting{};
  plan_data plan{};  // the plan of one of these choices; all have its kinds
  std::vector<std::vector<lowering::layer_parameter>> parameters{};  // by kind
  std::vector<parameter_elements> elements{};
  std::vector<lowered_form> forms{};
  std::vector<costed_stack> stacks{};

  constexpr bool are_of(const parallel_dims& d, int rows_of_microbatch) const {
    const int shards = weight_shards(dims), others = weight_shards(d);
    return rows == rows_of_microbatch && have_layers_alike(dims, d) &&
           (shards == others || (divisor % shards == 0 && divisor % others == 0)) &&
           ((dims.ep == 1 && !sum_over_batch) || (dims.pp == d.pp && dims.dp_replicate == d.dp_replicate));
  }
};

constexpr int rows_of(const question& q, const unscheduled& c) {
  return q.recipe.global_batch / c.microbatches / static_cast<int>(batch_ranks(c.dims));
}

/// Turns a layer without experts into the same layer for `times` as many sequences.
constexpr void repeat_rows(lowering::layer_program& l, int times) {
  for (lowering::local_shape& s : l.shapes)
    for (int d = 0; d < s.ndim; ++d)
      if (s.dims[d].name == "tokens") s.dims[d].count *= times;
  for (lowering::nodes* list : {&l.forward, &l.backward})
    for (lowering::node& n : *list) n.rows *= times;
}

/// Lowers layers when they are first asked for.
template <class Model>
class layer_cache {
 public:
  constexpr layer_cache(const Model& model, const question& q) : model_(model), q_(q) {}

  /// The layers of a choice; its schedule does not matter. The pointer is valid until the next call. Null if
  /// the choice breaks a rule and no choice with equal layers was found before.
  constexpr alike_layers* find(const unscheduled& c) {
    const int rows = rows_of(q_, c);
    for (alike_layers& a : all_)
      if (a.are_of(c.dims, rows)) return &a;
    training recipe = q_.recipe;
    recipe.recompute = c.recompute;
    plan_data p = make_plan_data(model_, c.dims, schedules::one_f_one_b{.microbatches = c.microbatches},
                                 recipe, q_.machines);
    if (!accepts(p.diagnostics)) return nullptr;
    alike_layers& a = all_.emplace_back();
    a.dims = p.dims;
    a.rows = rows;
    a.setting = rankc::detail::setting_for(p, target::cuda);
    a.plan = std::move(p);
    a.sum_over_batch = sums_over_batch(a.plan.kinds);
    for (std::size_t k = 0; k < a.plan.kinds.size(); ++k) {
      a.parameters.push_back(lowering::local_parameters(a.plan.kinds, k, a.dims));
      a.elements.push_back(elements_of(a.parameters.back()));
      for (const lowering::layer_parameter& w : a.parameters.back())
        if (!w.experts) a.divisor = std::gcd(a.divisor, w.rows);
    }
    return &a;
  }

  /// The parameters of a kind, on a rank of a choice with these layers.
  constexpr std::vector<lowering::layer_parameter> parameters_of(const alike_layers& a, std::size_t kind,
                                                                 const parallel_dims& d) const {
    std::vector<lowering::layer_parameter> all;
    for (std::size_t w = 0; w < a.parameters[kind].size(); ++w) {
      all.push_back(lowering::local_parameter(a.plan.kinds[kind].ops.weights[w], d));
      all.back().shared = a.parameters[kind][w].shared;
    }
    return all;
  }

  /// The split of the layers over the stages of a choice with these layers.
  /// Shapes: the result (stages).
  constexpr std::vector<int> split(alike_layers& a, const parallel_dims& d,
                                   const action_table& placed) const {
    for (const alike_layers::costed_stack& s : a.stacks)
      if (s.pp == d.pp) return split_layers(s.entries, placed, {});
    alike_layers::costed_stack& s = a.stacks.emplace_back();
    s.pp = d.pp;
    for (const layer_run& run : a.plan.runs) {
      const layer_kind& k = a.plan.kinds[static_cast<std::size_t>(run.kind)];
      s.entries.push_back({cost_of(k.ops, d), run.count, k.repeated});
    }
    return split_layers(s.entries, placed, {});
  }

  /// Lowers a form of these layers. The reference is valid until the next form is lowered.
  constexpr lowered_form& lower(alike_layers& a, const layer_form& wanted, const recomputation& recompute,
                                bool in_halves) const {
    const recomputation repeats = wanted.recomputes ? recompute : recomputation{};
    for (lowered_form& f : a.forms)
      if (f.form == wanted && f.recompute == repeats && f.in_halves == in_halves) return f;
    const auto kind = static_cast<std::size_t>(wanted.kind);
    lowering::layer_setting s = lowering::of_form(a.setting, wanted);
    s.recompute = repeats;
    s.splits_backward = in_halves;
    lowered_form& f = a.forms.emplace_back();
    f.form = wanted;
    f.recompute = repeats;
    f.in_halves = in_halves;
    f.setting = s;
    f.program = lowering::lower_layer(a.plan.kinds[kind].ops, a.parameters[kind], s);
    return f;
  }

  /// The time of a form for `times` its sequences, and a lower bound of its memory. The reference is valid
  /// until the form is repeated for another number.
  constexpr const lowered_form::repeated& repeat(lowered_form& f, int times) const {
    for (const lowered_form::repeated& known : f.of)
      if (known.times == times) return known;
    const auto takes = [&](const lowering::layer_program& l) {
      return cost_model::detail::phases_of(*q_.gpu, l, f.setting, q_.machines.ranks_per_node);
    };
    if (times == 1) {
      f.of.push_back({times, takes(f.program), bytes_of(f.program, 1)});
    } else {
      lowering::layer_program repeated = f.program;
      repeat_rows(repeated, times);
      f.of.push_back({times, takes(repeated), bytes_of(f.program, times)});
    }
    return f.of.back();
  }

 private:
  const Model& model_;
  const question& q_;
  std::vector<alike_layers> all_;
};

}  // namespace rankc::plan_search
