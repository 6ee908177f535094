// SPDX-License-Identifier: Apache-2.0
// `rankc search`: the fastest plans by a cost model. A line of JSON asks, or a person by flags, which make
// the same line. By the model of transformer-perf-estimates, that is: plan_request.hpp has rankc's own.
#pragma once
#include "published_model/search.hpp"

#include <iosfwd>
#include <optional>

#include "lines.hpp"

namespace rankc::tool {

inline constexpr std::string_view cost_models[]{"transformer_perf", "rankc"};
inline constexpr std::string_view strategies[]{"1d", "2d", "seqp"};

/// What a line asks for.
struct search_request {
  published_model::problem of;
  std::string model;  // its name, empty of sizes
  int top = 10;
};

/// Errors: RC8030 to RC8044, RC8100.
search_request read_search(const json& line, report& out);

/// Answer a line: how many plans there are and fit, sums over them, and the fastest. Names and units are the
/// Python's.
/// Errors: RC8030 to RC8044, RC8100.
void answer_search(const json& line, json& answer, report& out);

/// Print the answer as a table, and where the model without its known defects has another best plan, that one
/// too.
/// Errors: 1 where the line is refused; the diagnostics go to `errors`. `on_terminal`: these are, and may
/// show how far a search is.
int show_search(const json& line, std::ostream& out, std::ostream& errors, bool on_terminal = false);

/// Whether a line asks by rankc's own cost model.
bool asks_rankc(const json& line);

}  // namespace rankc::tool
