// SPDX-License-Identifier: Apache-2.0
#include "injected.hpp"

#include <rankc/runtime/host/rank.hpp>

#include <signal.h>
#include <unistd.h>
#include <chrono>
#include <cstdlib>
#include <limits>
#include <thread>

namespace rankc::runtime::host {

using runtime::injection;

void injected::meet(injection::moment when, std::int64_t step, std::uint64_t call) {
  const bool now =
      when == what_.when && step == what_.step && (when != injection::moment::call || call == what_.op);
  if (!now || has_begun_) return;
  has_begun_ = true;
  switch (what_.what) {
    case injection::fault::kill:
      kill(getpid(), SIGKILL);
      break;
    case injection::fault::stop:
      kill(getpid(), SIGSTOP);
      break;
    case injection::fault::exit:
      std::_Exit(what_.code);
    case injection::fault::abort:
      std::abort();
    case injection::fault::throws:
      throw std::runtime_error("an exception on purpose (--inject)");
    case injection::fault::delay:
      std::this_thread::sleep_for(std::chrono::duration<double>(what_.seconds));
      break;
    case injection::fault::flip:
    case injection::fault::drop:
    case injection::fault::corrupt:
    case injection::fault::nan:
      is_due_ = true;
  }
}

bool injected::takes(injection::fault f) {
  if (!is_due_ || what_.what != f) return false;
  is_due_ = false;
  return true;
}

void meet_fault(const lane& on) {
  const rank& r = on;
  r.fault->meet(injection::moment::call, r.input.step, r.words->calls.load(std::memory_order_relaxed));
}

void meet_fault_after_step(const rank& r) {
  r.fault->meet(injection::moment::after_step, r.input.step, 0);
  if (r.fault->takes(injection::fault::flip)) r.arena[r.where->weights.byte] ^= std::byte{1};
}

void spoil(const lane& on, at result) {
  const rank& r = on;
  if (r.fault == nullptr || !r.fault->takes(injection::fault::nan)) return;
  if (r.about->type == dtype::f64) *r.at<double>(result) = std::numeric_limits<double>::quiet_NaN();
  else *r.at<float>(result) = std::numeric_limits<float>::quiet_NaN();
}

}  // namespace rankc::runtime::host
