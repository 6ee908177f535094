// SPDX-License-Identifier: Apache-2.0
// An injected fault, for tests of a program's reaction to it. Built if RANKC_INJECT is on.
#pragma once
#include <cstdint>
#include <string>

namespace rankc::runtime {

struct injection {
  enum class fault { kill, stop, exit, abort, throws, delay, flip, drop, corrupt, nan };
  enum class moment { call, after_step, save };
  fault what = fault::kill;
  moment when = moment::call;
  int rank = 0;
  std::int64_t step = 1;
  std::uint64_t op = 1;  // counts from 1: the calls of the step that the rank's own thread issues
  int code = 3;          // for exit
  double seconds = 0;    // for delay
};

/// Parses
/// "rank=R,op=N|after|save[,step=S],kill|stop|exit[=CODE]|abort|throw|delay=SECONDS|drop|corrupt|nan|flip".
/// Errors: failure (2) for any other text, for a rank that does not exist, and for a build without fault
/// injection.
injection parse_injection(const std::string& text, int world);

}  // namespace rankc::runtime
