// SPDX-License-Identifier: Apache-2.0
// The times of one rank's step. The thread of a lane stamps its actions. The thread that moves a
// communication stamps it, under the fabric's lock.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <chrono>
#include <deque>

namespace rankc::runtime::host {

/// The time of a clock that all ranks share.
/// Units: microseconds.
inline double now() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class tracer {
 public:
  explicit tracer(int rank) : rank_(rank) {}

  /// Ends the previous action and begins the next.
  void begin(const char* action) {
    end();
    began_ = now();
    action_ = &did_.emplace_back(rank_, 0, action, began_, began_);
  }
  void end() {
    if (action_ != nullptr) action_->end = now();
    action_ = nullptr;
  }

  /// Waits on lane 0. An action that has computed nothing yet begins after the wait.
  template <class Wait>
  void wait(Wait for_it) {
    const bool first = now() - began_ < runtime::idle_before_wait;
    for_it();
    if (action_ != nullptr && first) began_ = action_->begin = now();
  }

  /// The entry for the times of a communication, or of an action on another lane. It is kept until `take`.
  runtime::traced* place(int lane, const char* name) {
    return &did_.emplace_back(rank_, lane, name, 0.0, 0.0);
  }

  /// Moves the times, relative to `start`, to `into`, in the order of issue.
  void take(double start, std::vector<runtime::traced>& into) {
    for (runtime::traced& t : did_) into.push_back({t.rank, t.lane, t.name, t.begin - start, t.end - start});
    did_.clear();
  }

 private:
  int rank_;
  double began_ = 0;  // begin of the current action, without its first waits
  runtime::traced* action_ = nullptr;
  std::deque<runtime::traced> did_;  // addresses of entries stay valid
};

}  // namespace rankc::runtime::host
