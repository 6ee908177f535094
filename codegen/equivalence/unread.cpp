// SPDX-License-Identifier: Apache-2.0
#include "unread.hpp"

#include <rankc/codegen/update_rows.hpp>

#include <algorithm>

namespace rankc::codegen::algebra {

namespace {

[[noreturn]] void refuse_attribute(std::string_view attribute, double found) {
  throw refusal("RC7720: the op has {} {}, which its row does not take; expected 0", attribute, found);
}

void check_attributes(const op& o, bool reads_rows, bool reads_seq, bool reads_number, bool reads_attention) {
  if (!reads_rows && o.rows != 0) refuse_attribute("rows", static_cast<double>(o.rows));
  if (!reads_seq && o.seq != 0) refuse_attribute("seq", static_cast<double>(o.seq));
  if (!reads_number && o.number != 0) refuse_attribute("number", o.number);
  if (reads_attention) return;
  o.attention.each_set([](std::string_view name, double x) {
    if (name == "causal")
      throw refusal(
          "RC7783: the op has attention that is not causal, which its row does not take; expected causal");
    refuse_attribute(name, x);
  });
}

void check_view(const view& v, bool has_units) {
  if (v.shape.size() < 2 && v.stride != 1)
    throw refusal("RC7721: tensor {} has {} dims and a stride of {}; expected 1", v.port, v.shape.size(),
                  v.stride);
  if (!has_units && v.unit != 1)
    throw refusal("RC7722: tensor {} has units of {} elements, which the row does not take; expected 1",
                  v.port, v.unit);
  if (v.balances.any() && v.port != "balanced_weight")
    throw refusal(
        "RC7723: tensor {} is updated by expert load at rate {}; expected this for a router's bias only",
        v.port, v.balances.rate);
}

void check_begins_at_0(const view& v) {
  if (v.first != 0)
    throw refusal("RC7725: tensor {} begins at index {}, but the op takes no first index; expected 0", v.port,
                  v.first);
}

bool has_units(const port& p) {
  return std::any_of(p.axes.begin(), p.axes.end(), [](const axis_use& a) { return a.unit != 0; });
}

/// The row of a collective, found by the names of its tensors; null if there is none.
const fact* converting_row(const op& o) {
  const auto is_of = [&](const fact& f) {
    if (!f.converts || f.ports.size() != o.views.size()) return false;
    for (std::size_t i = 0; i < f.ports.size(); ++i)
      if (o.views[i].port != f.ports[i].name ||
          o.views[i].written != (i < static_cast<std::size_t>(f.results)))
        return false;
    return true;
  };
  const auto found = std::find_if(facts().begin(), facts().end(), is_of);
  return found == facts().end() ? nullptr : &*found;
}

/// Checks that a conversion of the model has the views of its row. A collective of weights or gradients has
/// no views.
void check_collective(const op& o) {
  check_attributes(o, exchanges_slots(o.does), o.does == collective_kind::all_to_all, false, false);
  if (o.views.empty()) return;
  const fact* row = converting_row(o);
  if (!row)
    throw refusal("RC7724: the collective names {} tensors; expected those of a conversion of the model",
                  o.views.size());
  for (std::size_t i = 0; i < o.views.size(); ++i) {
    check_view(o.views[i], has_units(row->ports[i]));
    check_begins_at_0(o.views[i]);
  }
}

}  // namespace

void check_unread(const op& o, const fact& f) {
  check_attributes(o, f.reads_rows, f.reads_seq, f.reads_number, f.attention);
  for (std::size_t i = 0; i < f.ports.size(); ++i) check_view(o.views[i], has_units(f.ports[i]));
}

void check_unread(const op& o) {
  if (!o.given.empty())
    throw refusal("RC7752: the op calls no kernel of a row and has {} sizes and numbers; expected 0",
                  o.given.size());
  if (o.kind == op_kind::collective) return check_collective(o);
  check_attributes(o, false, false, false, false);
  const bool is_of_views = o.row == "sum_squares" || is_update(o);
  if (!is_of_views && !o.views.empty())
    throw refusal("RC7726: the op calls no kernel and has {} tensors; expected 0", o.views.size());
  for (const view& v : o.views) {
    check_view(v, false);
    check_begins_at_0(v);
  }
}

void check_unread(const codegen::holding& h) {
  const bool is_of_parameter = h.kind <= holding_kind::second_moment;
  const bool is_rotary = h.kind == holding_kind::rotary;
  const bool has_box = is_of_parameter || is_rotary || is_input(h.kind),
             has_name = is_of_parameter || h.kind == holding_kind::input;
  const bool has_positions = h.positions != 0 || h.dim != 0 || h.theta != 0 || h.scaling != rope_scaling{};
  const bool says_more =
      (!has_name && !h.name.empty()) || (!is_rotary && has_positions) || (!has_box && !h.box.empty());
  if (says_more)
    throw refusal(
        "RC7728: the {} of the step has name \"{}\", {} box dims, {} positions, dim {} and theta {}; some of "
        "these do not belong to its kind",
        holding_names[static_cast<int>(h.kind)], h.name, h.box.size(), h.positions, h.dim, h.theta);
}

}  // namespace rankc::codegen::algebra
