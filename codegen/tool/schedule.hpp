// SPDX-License-Identifier: Apache-2.0
// `rankc schedule`: the schedules of the language at run time. A request names a schedule, or contains one in
// PyTorch's notation ("csv"). The answer is its order on every rank, with and without messages, and its
// costs.
#pragma once
#include "lines.hpp"

namespace rankc::tool {

/// Answers a line that asks for a schedule. Makespan, bubbles and peaks are those of the order itself, in
/// which messages do not wait for each other. program_makespan is that of "program", in which messages of one
/// directed pair of ranks do. With "complete" both have the REDUCE_GRADs and STEPs of a plan's schedule. With
/// "gather" both also have the UNSHARDs and RESHARDs of stages with sharded weights; its number is the most
/// stages that are gathered at once.
/// Units: costs in any unit of time; memory_limit and peak_activations in microbatches of one stage; slots in
/// messages.
/// Errors: RC8030 to RC8044, RC8090 to RC8093; RC104, RC301, RC305, RC306, RC307 and RC311; RC312 if a
/// schedule is undefined; RC313 if a text is no schedule, and RC302, RC303, RC304 and RC310 if it cannot run.
void answer_schedule(const json& line, json& answer, report& out);

}  // namespace rankc::tool
