// SPDX-License-Identifier: Apache-2.0
// The forms in which a plan's layers are lowered. Some layers of a kind may recompute forward in backward.
// Layers with no trained layer before them compute no gradient of their input.
#pragma once
#include <rankc/recipe/training.hpp>
#include <rankc/stages/kinds_of_stages.hpp>
#include <rankc/trace/trace.hpp>

namespace rankc {

/// A kind of layers, with or without recomputation, and with or without the gradient of their input.
struct layer_form {
  int kind = 0;
  bool recomputes = false, gives_dx = true;
  bool repeated = false;  // the kind's flag
  constexpr bool operator==(const layer_form&) const = default;
};

namespace detail {

/// The form of each stage's layers, in order. All stages except the first send a gradient to the previous
/// stage, even if that stage trains nothing.
/// Shapes: (stages), then (layers of the stage).
constexpr std::vector<std::vector<layer_form>> forms_by_stages(const plan_data& p) {
  std::vector<std::vector<layer_form>> stages;
  int number = 0;  // number of the next repeated layer
  bool trains_before = false;
  for (const std::vector<int>& kinds : kinds_of_stages(p)) {
    const bool is_first = stages.empty();
    std::vector<layer_form>& forms = stages.emplace_back();
    for (int k : kinds) {
      const layer_kind& kind = p.kinds[k];
      const bool reads_step = kind.ops.values[kind.ops.input].is_input;
      forms.push_back({k, kind.repeated && p.recipe.recompute.is_of(number),
                       reads_step || trains_before || !is_first, kind.repeated});
      number += kind.repeated;
      for (const weight_info& w : kind.ops.weights) trains_before |= w.trainable;
    }
  }
  return stages;
}

}  // namespace detail

/// The forms that occur in a plan, by kind. A form without recomputation comes before one with it, then a
/// form with a gradient of its input before one without it.
constexpr std::vector<layer_form> forms_of(const plan_data& p) {
  const std::vector<std::vector<layer_form>> stages = detail::forms_by_stages(p);
  const auto occurs = [&](const layer_form& wanted) {
    for (const std::vector<layer_form>& forms : stages)
      for (const layer_form& f : forms)
        if (f == wanted) return true;
    return false;
  };
  std::vector<layer_form> forms;
  for (int k = 0; k < static_cast<int>(p.kinds.size()); ++k)
    for (const bool recomputes : {false, true})
      for (const bool gives_dx : {true, false})
        if (const layer_form f{k, recomputes, gives_dx, p.kinds[k].repeated}; occurs(f)) forms.push_back(f);
  return forms;
}

namespace detail {
constexpr bool has_op(const std::vector<layer_kind>& kinds, auto is) {
  for (const layer_kind& kind : kinds)
    for (const op& o : kind.ops.ops)
      if (is(o)) return true;
  return false;
}
}  // namespace detail

/// True if some layers reduce over all ranks that have tokens of the batch.
constexpr bool sums_over_batch(const std::vector<layer_kind>& kinds) {
  return detail::has_op(kinds, [](const op& o) { return o.kind->converts == conversion::all_reduce_batch; });
}

/// True if some layers reduce, gather or exchange over cp while messages are in flight on its rings.
constexpr bool communicates_beside_rings(const std::vector<layer_kind>& kinds, const parallel_dims& d) {
  return ring_ranks(d) > 1 && detail::has_op(kinds, [](const op& o) {
           const bool in_groups = o.kind->converts == conversion::all_to_all && o.with.ring > 1;
           return o.over == axis::cp && o.kind->communicates() && !o.kind->is_shift() && !in_groups;
         });
}

/// The forms of each stage's layers, in order.
/// Shapes: (stages), then (layers of the stage), indices of forms_of.
constexpr std::vector<std::vector<int>> forms_of_stages(const plan_data& p) {
  const std::vector<layer_form> forms = forms_of(p);
  std::vector<std::vector<int>> stages;
  for (const std::vector<layer_form>& layers : detail::forms_by_stages(p)) {
    stages.emplace_back();
    for (const layer_form& wanted : layers) {
      int f = 0;
      while (!(forms[f] == wanted)) ++f;
      stages.back().push_back(f);
    }
  }
  return stages;
}

/// The number of each kind's layers that recompute.
/// Shapes: (kinds).
constexpr std::vector<int> count_recomputed(const plan_data& p, const recomputation& r) {
  std::vector<int> recomputed(p.kinds.size(), 0);
  int number = 0;  // number of the next repeated layer
  for (const layer_run& run : p.runs)
    for (int i = 0; p.kinds[run.kind].repeated && i < run.count; ++i)
      recomputed[run.kind] += r.is_of(number++);
  return recomputed;
}

}  // namespace rankc
