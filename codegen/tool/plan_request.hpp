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

/// Errors: RC8030 to RC8044, RC8070.
plan_request read_plan_request(const json& line, report& out);

/// Answer a line. Errors: those of its reading; the rules that a plan to predict breaks.
void answer_plans(const json& line, json& answer, report& out);

/// Print the answer as a table, and while it is searched for, where `errors` are on a terminal, how far that
/// is.
/// Errors: 1 where the line is refused; the diagnostics go to `errors`.
int show_plans(const json& line, std::ostream& out, std::ostream& errors, bool on_terminal);

/// Where to write what was found: the fastest plan as a header that compiles, all as a page. Empty: nowhere.
struct plan_files {
  std::string header, page;
  bool any() const { return !header.empty() || !page.empty(); }
};
/// Errors: 2 where a file of something else has a name; 1 where the line is refused, no plan fits or a file
/// cannot be written; why goes to `errors`.
int write_plans(const json& line, const plan_files&, std::ostream& errors, bool on_terminal);

/// "pp 2 x dp_shard 4, zero_bubble_v of 8 microbatches, repeating layers".
std::string text_of(const plan_choice&);

/// "llama3-8b on 8 GPUs h200 of 141 GB".
std::string text_of(const plan_request&);

/// The names of plan_search::recomputations.
inline constexpr std::string_view recompute_names[]{"none", "activations_norms", "full"};
std::string_view name_of(const recomputation&);

}  // namespace rankc::tool
