// SPDX-License-Identifier: Apache-2.0
// How long the processes of a program wait for each other.
#pragma once
#include <rankc/launch/environment.hpp>
#include <rankc/runtime/time_limit.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace rankc::runtime {

struct limits {
  static constexpr std::chrono::seconds before_a_note{3};  // that a rank waits for others at the start
  std::chrono::milliseconds join{120'000};                 // until all ranks have joined
  std::chrono::milliseconds silence{6'000};                // of a rank, which then counts as lost
  std::chrono::milliseconds end{
      2'500};  // from another rank's failure to the end of a process that does not notice
  std::chrono::milliseconds exchange = usual_exchange;
  std::chrono::milliseconds step{0};  // in a step, until a rank makes progress; 0: from earlier steps
  /// The time between two signs of life of a rank.
  std::chrono::milliseconds sign_of_life() const {
    return std::min(std::chrono::milliseconds(1000), silence / 4);
  }
};

/// A time as sentences contain it.
inline long whole_seconds(std::chrono::duration<double> d) { return std::lround(d.count()); }

/// The limits, as far as RANKC_JOIN_TIMEOUT, RANKC_SILENCE_TIMEOUT, RANKC_STEP_TIMEOUT and
/// RANKC_EXCHANGE_TIMEOUT set them.
/// Units: the variables are in seconds.
/// Errors: those of time_limit.
limits read_limits(const environment&);

}  // namespace rankc::runtime
