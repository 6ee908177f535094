// SPDX-License-Identifier: Apache-2.0
// The passes over a layer, in order.
#pragma once
#include <rankc/program/add_in_place.hpp>
#include <rankc/program/clear_sums.hpp>
#include <rankc/program/fuse.hpp>
#include <rankc/program/pack.hpp>
#include <rankc/program/select.hpp>
#include <rankc/program/split.hpp>
#include <rankc/program/storage.hpp>
#include <rankc/schedule/actions.hpp>

namespace rankc::program {

/// What the passes over the layers of a plan are told.
constexpr layer_setting setting_of(const auto& plan, precision type, target to) {
  bool splits = false;
  for (const action& a : plan.actions.actions) splits |= a.kind == action_kind::I || a.kind == action_kind::W;
  return {plan.dims, type, to, plan.recipe.deterministic, splits, !plan.actions.inference};
}

/// Lower one layer: nodes, halves of backward where the schedule has them, no backward where it has none, fusions,
/// storage and offsets.
/// Errors: not_lowered.
constexpr layer_program lower_layer(const auto& t, std::vector<layer_parameter> parameters, const layer_setting& s) {
  layer_program p = select_nodes(t, std::move(parameters), s);
  clear_sums(p);
  if (s.splits_backward) split_backward(p);
  add_in_place(p);
  fuse_forward(p, s.to);
  if (s.to == target::cuda) pack_linears(p, s);
  fuse_backward(p, s.to);
  if (!s.trains) p.backward.clear();
  p.in_halves = s.splits_backward;
  while (p.first_half < p.backward.size() && !p.backward[p.first_half].for_weights) ++p.first_half;
  place_values(p);
  return p;
}

}  // namespace rankc::program
