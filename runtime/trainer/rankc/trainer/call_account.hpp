// SPDX-License-Identifier: Apache-2.0
// What the calls of a rank's steps took, against what they do and the least that the plan's GPU takes for
// that: the roofline.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <span>
#include <string>
#include <vector>

namespace rankc::runtime {

/// The calls by one name. Units: milliseconds of a step, on average.
struct measured_calls {
  const call_row* of;
  double ms = 0;       // on lanes that compute
  double beside = 0;   // on lanes of their own, waits for other ranks included
  double awaited = 0;  // of that, while nothing computes, where it is the last to end before something does
};

/// The calls of a rank. Units: as above.
struct call_account {
  int rank = 0;
  double step_ms = 0;  // from the begin of the first call to the end of the last one
  double idle_ms = 0;  // of that, while no lane that computes runs a call
  std::vector<measured_calls> calls;
};

/// `steps`: of each step the times of the calls of all ranks, as engine::step_by_calls has them; at least
/// one.
/// Errors: failure (70) for a call of which the program's table has none.
call_account account_of(const description&, int rank, std::span<const std::vector<traced>> steps);

/// A table, a line each: for each kind of call, those that take longest first, its sum and its calls, with
/// the operations and bytes of a second, and the share of the roofline that is reached. "-": none, or not
/// known.
std::vector<std::string> account_table(const call_account&);

/// The accounts of some ranks as one JSON object. Units: `step_ms` of a step that is not timed call by call.
std::string account_json(double step_ms, std::span<const call_account>);

}  // namespace rankc::runtime
