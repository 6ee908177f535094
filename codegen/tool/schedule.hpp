// SPDX-License-Identifier: Apache-2.0
// `rankc schedule`: the schedules of the language at run time. A line asks for one, by name or in PyTorch's
// notation ("csv"); the answer is its order on every rank, with and without messages, and what it costs.
#pragma once
#include "lines.hpp"

namespace rankc::tool {

/// Answer a line that asks for a schedule. Makespan, bubbles and peaks are those of the order itself, where
/// messages do not wait for one another; program_makespan is that of "program", where those of one directed
/// pair of ranks do. With "complete" both have the REDUCE_GRADs and STEPs that a plan's schedule has; with
/// "gather" also the UNSHARDs and RESHARDs of stages whose weights are sharded, with at most so many gathered
/// at once.
/// Units: costs in any unit of time; memory_limit and peak_activations in microbatches of one stage; slots in
/// messages.
/// Errors: RC8030 to RC8044, RC8090 to RC8093; RC104, RC301, RC305, RC306, RC307 and RC311; RC312 where a
/// schedule is undefined; RC313 where a text is not one, and RC302, RC303, RC304 and RC310 where it cannot
/// run.
void answer_schedule(const json& line, json& answer, report& out);

}  // namespace rankc::tool
