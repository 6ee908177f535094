// SPDX-License-Identifier: Apache-2.0
// A fault on purpose, for tests of what a program does about it: built where RANKC_INJECT is on.
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
  int code = 3;          // of exit
  double seconds = 0;    // of delay
};

/// "rank=R,op=N|after|save[,step=S],kill|stop|exit[=CODE]|abort|throw|delay=SECONDS|drop|corrupt|nan|flip"
/// Errors: failure (2) for anything else, for a rank that is none, and where this build has no faults on
/// purpose.
injection parse_injection(const std::string& text, int world);

}  // namespace rankc::runtime
