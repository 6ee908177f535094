// SPDX-License-Identifier: Apache-2.0
// Timeouts of the processes of a program.
#pragma once
#include <rankc/launch/environment.hpp>
#include <rankc/runtime/time_limit.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace rankc::runtime {

struct limits {
  // How long a rank waits at the start before it prints a note.
  static constexpr std::chrono::seconds before_a_note{3};
  std::chrono::milliseconds join{120'000};   // until all ranks have joined
  std::chrono::milliseconds silence{6'000};  // time without a sign of life before a rank counts as lost
  std::chrono::milliseconds end{
      2'500};  // from another rank's failure until a process that does not notice it is ended
  std::chrono::milliseconds exchange = usual_exchange;
  std::chrono::milliseconds step{0};  // without progress of any rank in a step; 0: derived from earlier steps
  /// The interval between a rank's signs of life.
  std::chrono::milliseconds sign_of_life() const {
    return std::min(std::chrono::milliseconds(1000), silence / 4);
  }
};

/// A time in whole seconds, as sentences print it.
inline long whole_seconds(std::chrono::duration<double> d) { return std::lround(d.count()); }

/// The default limits, changed by RANKC_JOIN_TIMEOUT, RANKC_SILENCE_TIMEOUT, RANKC_STEP_TIMEOUT and
/// RANKC_EXCHANGE_TIMEOUT.
/// Units: the variables are in seconds.
/// Errors: those of time_limit.
limits read_limits(const environment&);

}  // namespace rankc::runtime
