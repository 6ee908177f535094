// SPDX-License-Identifier: Apache-2.0
// `rankc search` by rankc's own cost model: its requests and answers.
#pragma once
#include <iosfwd>
#include <optional>
#include <string>

#include "plan_search.hpp"

namespace rankc::tool {

/// A request: for the best plans, or for the prediction of one plan.
struct plan_request {
  plan_question of;
  std::string model, cluster;  // their names; empty if sizes are given
  int top = 10;
  std::optional<plan_choice> predict;
};

/// Errors: RC8030 to RC8044, RC8070.
plan_request read_plan_request(const json& line, report& out);

/// Answers a line. Errors: those of reading it; the rules that a plan to predict breaks.
void answer_plans(const json& line, json& answer, report& out);

/// Prints the answer as a table, and shows the progress of the search if `errors` is a terminal.
/// Errors: 1 if the line is refused; the diagnostics go to `errors`.
int show_plans(const json& line, std::ostream& out, std::ostream& errors, bool on_terminal);

/// The files for the findings: the fastest plan as a header that compiles, and all plans as a page. Empty:
/// not written.
struct plan_files {
  std::string header, page;
  bool any() const { return !header.empty() || !page.empty(); }
};
/// Errors: 2 if a file of another kind has a name; 1 if the line is refused, no plan fits or a file cannot be
/// written. The reason goes to `errors`.
int write_plans(const json& line, const plan_files&, std::ostream& errors, bool on_terminal);

/// "pp 2 x dp_shard 4, zero_bubble_v of 8 microbatches, repeating layers".
std::string text_of(const plan_choice&);

/// "llama3-8b on 8 GPUs h200 of 141 GB".
std::string text_of(const plan_request&);

/// The names of plan_search::recomputations.
inline constexpr std::string_view recompute_names[]{"none", "activations_norms", "full"};
std::string_view name_of(const recomputation&);

}  // namespace rankc::tool
