// SPDX-License-Identifier: Apache-2.0
// The passes over a layer, in order.
#pragma once
#include <rankc/lowering/add_in_place.hpp>
#include <rankc/lowering/clear_sums.hpp>
#include <rankc/lowering/drop_unneeded.hpp>
#include <rankc/stages/forms.hpp>
#include <rankc/lowering/fuse.hpp>
#include <rankc/lowering/fuse_across.hpp>
#include <rankc/lowering/pack.hpp>
#include <rankc/lowering/pair_by_rows.hpp>
#include <rankc/lowering/recompute.hpp>
#include <rankc/lowering/round_linears.hpp>
#include <rankc/lowering/select.hpp>
#include <rankc/lowering/send_ahead.hpp>
#include <rankc/lowering/split.hpp>
#include <rankc/lowering/storage.hpp>
#include <rankc/schedule/actions.hpp>

namespace rankc::lowering {

/// The settings for lowering the layers of a plan.
constexpr layer_setting setting_of(const plan_data& plan, precision type, target to) {
  bool splits = false;
  for (const action& a : plan.actions.actions) splits |= a.kind == action_kind::I || a.kind == action_kind::W;
  return {plan.dims,
          type,
          to,
          plan.recipe.deterministic,
          splits,
          !plan.actions.inference,
          plan.recipe.recompute,
          true,
          plan.recipe.linears};
}
/// The settings for layers of one form. Recomputation and fp8 may be off for that form.
constexpr layer_setting of_form(layer_setting s, const layer_form& f) {
  if (!f.recomputes) s.recompute = {};
  if (!f.repeated) s.linears = linear_precision::plain;
  s.gives_dx = f.gives_dx;
  return s;
}

/// The passes over a layer, in order. `around(name, pass)` gets each pass and calls it. A pass does nothing
/// in plans that do not need it.
/// Errors: not_lowered.
constexpr void run_passes(layer_program& p, const auto& t, std::vector<layer_parameter> parameters,
                          const layer_setting& s, auto around) {
  around("select_nodes", [&] { p = select_nodes(t, std::move(parameters), s); });
  around("drop_unneeded", [&] { drop_unneeded(p, s); });
  around("clear_sums", [&] { clear_sums(p); });
  around("split_backward", [&] {
    if (s.splits_backward) split_backward(p);
  });
  around("add_in_place", [&] { add_in_place(p); });
  around("fuse_forward", [&] { fuse_forward(p, s); });
  around("pack_linears", [&] {
    if (s.to == target::cuda) pack_linears(p, s);
  });
  around("round_linears", [&] {
    if (s.linears != linear_precision::plain) round_linears(p, s);
  });
  around("fuse_backward", [&] { fuse_backward(p, s); });
  around("recompute", [&] {
    if (s.trains && s.recompute.any()) recompute(p);
  });
  around("fuse_across", [&] {
    if (s.trains) fuse_across(p, s);
  });
  around("settle_backward", [&] { settle_backward(p, s); });
  around("send_ahead", [&] { send_ahead(p); });
  around("pair_by_rows", [&] {
    if (s.to == target::cuda && region_ranks(s.dims) > 1) pair_by_rows(p);
  });
  around("place_values", [&] { place_values(p); });
}

/// Lowers one layer: nodes, fused and packed ops, recomputation, the halves of a split backward, storage and
/// offsets.
/// Errors: not_lowered.
constexpr layer_program lower_layer(const auto& t, std::vector<layer_parameter> parameters,
                                    const layer_setting& s) {
  layer_program p;
  run_passes(p, t, std::move(parameters), s, [](std::string_view, auto pass) { pass(); });
  return p;
}

}  // namespace rankc::lowering
