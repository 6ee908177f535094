// SPDX-License-Identifier: Apache-2.0
// `rankc search` by rankc's own cost model: what a line asks, and what is answered.
#pragma once
#include <iosfwd>
#include <optional>
#include <string>

#include "plan_search.hpp"

namespace rankc::tool {

/// What a line asks for: the best plans, or what one takes.
struct plan_request {
  plan_question of;
  std::string model, cluster;  // their names, empty of sizes
  int top = 10;
  std::optional<plan_choice> predict;
};

/// Errors: RC300.
plan_request read_plan_request(const json& line, report& out);

/// Answer a line. Errors: RC300; the rules that a plan to predict breaks.
void answer_plans(const json& line, json& answer, report& out);

/// Print the answer as a table. Errors: 1 where the line is refused; the diagnostics go to `errors`.
int show_plans(const json& line, std::ostream& out, std::ostream& errors);

/// Write the fastest plan as a header that compiles. Errors: 1 where the line is refused, no plan fits or the file cannot be
/// written; why goes to `errors`.
int emit_plan(const json& line, const std::string& file, std::ostream& errors);

/// "pp 2 x dp_shard 4, zero_bubble_v of 8 microbatches, repeating layers".
std::string text_of(const plan_choice&);

/// Why the first is the first: what limits it, and what the second takes longer for. Shapes: at least one.
std::string reasons_of(const std::vector<judged_plan>& by_time);

/// What each of planner::recomputations is called.
inline constexpr std::string_view recompute_names[]{"none", "activations_norms", "full"};
std::string_view name_of(const recomputation&);

}  // namespace rankc::tool
