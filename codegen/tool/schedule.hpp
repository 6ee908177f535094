// SPDX-License-Identifier: Apache-2.0
// `rankc schedule`: the schedules of the language at run time. A line asks for one; the answer is its order
// on every rank, with and without messages, and what it costs.
#pragma once
#include <rankc/schedule/actions.hpp>

#include <string>
#include <vector>

#include "lines.hpp"

namespace rankc::tool {

/// The names of the schedules that this version has: "gpipe, one_f_one_b".
std::string schedule_names();

/// What rank `rank` issues, messages included, in the order of the generated program: in training each
/// receive is issued one action ahead of its use; in inference right before it.
std::vector<std::string> issue_order(const action_table&, int rank);

/// Answer a line that asks for a schedule.
/// Units: costs in any unit of time; memory_limit and peak_activations in microbatches of one stage.
/// Errors: RC104, RC300, RC301, RC305, RC306, RC307 and RC311.
void answer_schedule(const json& line, json& answer, report& out);

}  // namespace rankc::tool
