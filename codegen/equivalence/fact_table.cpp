// SPDX-License-Identifier: Apache-2.0
#include "fact_table.hpp"

#include <rankc/codegen/update_rows.hpp>

#include <algorithm>
#include <iterator>

#include "refusal.hpp"

namespace rankc::codegen::algebra {

namespace {

constexpr std::size_t max_ports = 10, max_operands = 7, max_dims = 2;

/// Whether letters are axes of operands, each listed once, and none is an axis of the result.
bool are_summed(const fact& f, const equation& e) {
  const auto has = [&](int port, char letter) {
    const std::vector<axis_use>& axes = f.ports[static_cast<std::size_t>(port)].axes;
    return std::any_of(axes.begin(), axes.end(), [&](const axis_use& a) { return a.of == letter; });
  };
  return std::all_of(e.over.begin(), e.over.end(), [&](char letter) {
    const bool is_of_operand =
        std::any_of(e.operands.begin(), e.operands.end(), [&](int o) { return has(o, letter); });
    return is_of_operand && !has(e.results[0], letter) &&
           std::count(e.over.begin(), e.over.end(), letter) == 1;
  });
}

/// Whether an equation computes a result from all operands, each used once.
bool is_function(const fact& f, const equation& e) {
  const bool are_operands = std::all_of(e.operands.begin(), e.operands.end(), [&](int o) {
    return o >= f.results && o < static_cast<int>(f.ports.size()) &&
           std::count(e.operands.begin(), e.operands.end(), o) == 1;
  });
  const std::size_t given = f.ports.size() - static_cast<std::size_t>(f.results);
  return e.is == equation::kind::function && e.how == joining::sum && are_operands &&
         e.operands.size() == given && given > 0 && given <= max_operands && are_summed(f, e);
}

/// Checks that a user's row does not claim to copy, to add tensors, to take a maximum or to move data.
void check_is_function(const fact& f) {
  const bool has_other_need = std::any_of(f.needs.begin(), f.needs.end(), [](const std::string& need) {
    return need != "whole" && need != "first" && need != "sequences" && need != "scratch";
  });
  bool is_sound = !has_other_need && !f.parts && f.results > 0 && f.ports.size() <= max_ports &&
                  f.results == static_cast<int>(f.equations.size());
  for (const port& p : f.ports) is_sound = is_sound && p.axes.size() <= max_dims;
  for (std::size_t k = 0; is_sound && k < f.equations.size(); ++k)
    is_sound = f.equations[k].results[0] == static_cast<int>(k) && is_function(f, f.equations[k]);
  if (!is_sound)
    throw refusal(
        "RC7744: the facts of the user's row {} are not functions; expected one equation for each result, in "
        "the order of the ports, with all operands, a ' after those in which it is linear, and the axes that "
        "it sums over",
        f.row);
}

}  // namespace

bool is_taken(std::string_view row) {
  const bool has_no_line = row == "sum_squares" || find_update_row(row);
  return row.empty() || has_no_line || find_fact(row) >= 0;
}

fact_table::fact_table(const specification& s) {
  std::vector<line> lines;
  const auto check_name = [&](const std::string& row) {
    const auto is_row = [&](const line& l) { return row == l.row; };
    if (is_taken(row) || unknown_.count(row) || std::any_of(lines.begin(), lines.end(), is_row))
      throw refusal("RC7743: the name \"{}\" of a user's row is empty, or that of another row", row);
  };
  for (const specification::row_facts& r : s.rows) {
    if (!r.unknown.empty()) {
      unknown_.try_emplace(r.row, r.unknown);
      continue;
    }
    check_name(r.row);
    lines.push_back({r.row.c_str(), r.ports.c_str(), r.rule.c_str(), r.needs.c_str(), r.attributes.c_str(),
                     r.gradients.c_str()});
  }
  if (!find_update_row(s.optimizer.row)) check_name(s.optimizer.row);
  if (lines.empty()) return;
  with_users_ = read_facts(lines, facts());
  for (std::size_t i = facts().size(); i < with_users_.size(); ++i) {
    check_is_function(with_users_[i]);
    with_users_[i].of_user = true;
  }
}

int fact_table::find(std::string_view row) const {
  if (const auto why = unknown_.find(row); why != unknown_.end()) throw unknown_row(row, why->second);
  if (const int known = find_fact(row); known >= 0) return known;
  for (std::size_t i = facts().size(); i < with_users_.size(); ++i)
    if (with_users_[i].row == row) return static_cast<int>(i);
  throw unknown_row(row);
}

}  // namespace rankc::codegen::algebra
