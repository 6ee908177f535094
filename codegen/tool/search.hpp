// SPDX-License-Identifier: Apache-2.0
// `rankc search`: the fastest plans by a cost model. A request is a line of JSON, or flags that make the same
// line. The model here is that of transformer-perf-estimates; plan_request.hpp has rankc's own.
#pragma once
#include "published_model/search.hpp"

#include <iosfwd>
#include <optional>

#include "lines.hpp"

namespace rankc::tool {

inline constexpr std::string_view cost_models[]{"transformer_perf", "rankc"};
inline constexpr std::string_view strategies[]{"1d", "2d", "seqp"};

/// A request.
struct search_request {
  published_model::problem of;
  std::string model;  // its name; empty if sizes are given
  int top = 10;
};

/// Errors: RC8030 to RC8044, RC8100.
search_request read_search(const json& line, report& out);

/// Answers a line: how many plans there are and how many fit, sums over them, and the fastest. Names and
/// units are those of the Python code.
/// Errors: RC8030 to RC8044, RC8100.
void answer_search(const json& line, json& answer, report& out);

/// Prints the answer as a table. If the other form of the model (with or without its known defects) has
/// another best plan, prints that plan too.
/// Errors: 1 if the line is refused; the diagnostics go to `errors`. `on_terminal`: `errors` is a terminal
/// and may show the progress.
int show_search(const json& line, std::ostream& out, std::ostream& errors, bool on_terminal = false);

/// True if a line asks for rankc's own cost model.
bool asks_rankc(const json& line);

}  // namespace rankc::tool
