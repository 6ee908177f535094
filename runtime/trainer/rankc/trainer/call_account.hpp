// SPDX-License-Identifier: Apache-2.0
// The time of each kind of call in a rank's step, compared with its operations and bytes and with the GPU's
// least time for them: the roofline.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <span>
#include <string>
#include <vector>

namespace rankc::runtime {

/// All calls with one name.
/// Units: milliseconds of an average step.
struct measured_calls {
  const call_row* of;
  double ms = 0;       // on compute lanes
  double beside = 0;   // on other lanes, waits for other ranks included
  double awaited = 0;  // time that idle compute lanes waited until this call ended
};

/// The calls of a rank.
/// Units: milliseconds of an average step.
struct call_account {
  int rank = 0;
  double step_ms = 0;  // from the start of the first call to the end of the last one
  double idle_ms = 0;  // the part of it in which no compute lane runs a call
  std::vector<measured_calls> calls;
};

/// `steps`: for each step, the times of the calls of all ranks from engine::step_by_calls; at least one step.
/// Errors: failure (70) for a call that the program's table lacks.
call_account account_of(const description&, int rank, std::span<const std::vector<traced>> steps);

/// A table with a line for each call and for each kind of call, the longest kinds first. A line has the sum
/// of the times, the number of calls, operations and bytes per second, and the share of the roofline. "-":
/// zero or unknown.
std::vector<std::string> account_table(const call_account&);

/// The accounts of some ranks as one JSON object.
/// Units: `step_ms`: milliseconds of a step that is not timed call by call.
std::string account_json(double step_ms, std::span<const call_account>);

}  // namespace rankc::runtime
