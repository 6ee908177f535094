// SPDX-License-Identifier: Apache-2.0
#include "fact_table.hpp"

#include <algorithm>
#include <iterator>

#include "refusal.hpp"

namespace rankc::codegen::algebra {

namespace {

/// Ops that are no rows of the table.
constexpr std::string_view taken_names[]{"sum_squares", "adamw", "sgd"};

void check_name(const std::vector<line>& before, const std::string& row) {
  const auto is_row = [&](const line& l) { return row == l.row; };
  const bool is_taken =
      row.empty() || find_fact(row) >= 0 || std::any_of(before.begin(), before.end(), is_row) ||
      std::find(std::begin(taken_names), std::end(taken_names), row) != std::end(taken_names);
  if (is_taken)
    throw refusal("RC7743: the user's row \"{}\" has the name of another row; expected a name of its own",
                  row);
}

/// Copies, sums, maxima and moves of data are known of rankc's rows alone.
void check_is_function(const fact& f) {
  const bool has_other_equation = std::any_of(f.equations.begin(), f.equations.end(), [](const equation& e) {
    return e.is != equation::kind::function || e.how != joining::sum;
  });
  const bool has_other_need = f.positions || f.listed || f.documents || f.chunks || f.ring || f.shares ||
                              f.groups || f.commutative || f.arranges || f.owns || f.grouped || f.segments ||
                              f.counts || f.converts || f.parts || f.by >= 0 || f.is_like;
  const bool is_whole = f.results > 0 && f.results == static_cast<int>(f.equations.size()) &&
                        f.results < static_cast<int>(f.ports.size());
  if (has_other_equation || has_other_need || !is_whole)
    throw refusal(
        "RC7744: the facts of the user's row {} claim more than functions of its operands; expected, of each "
        "result, its operands, those in which it is linear and the axes that it sums over",
        f.row);
}

}  // namespace

fact_table::fact_table(const std::vector<specification::row_facts>& of_user) {
  std::vector<line> lines;
  for (const specification::row_facts& r : of_user) {
    if (!r.unknown.empty()) {
      unknown_.try_emplace(r.row, r.unknown);
      continue;
    }
    check_name(lines, r.row);
    lines.push_back({r.row.c_str(), r.ports.c_str(), r.rule.c_str(), r.needs.c_str(), r.attributes.c_str(),
                     r.gradients.c_str()});
  }
  if (lines.empty()) return;
  with_users_ = read_facts(lines, facts());
  for (std::size_t i = facts().size(); i < with_users_.size(); ++i) check_is_function(with_users_[i]);
}

int fact_table::find(std::string_view row) const {
  if (const auto why = unknown_.find(row); why != unknown_.end()) throw unknown_row(row, why->second);
  if (const int known = find_fact(row); known >= 0) return known;
  for (std::size_t i = facts().size(); i < with_users_.size(); ++i)
    if (with_users_[i].row == row) return static_cast<int>(i);
  throw unknown_row(row);
}

}  // namespace rankc::codegen::algebra
