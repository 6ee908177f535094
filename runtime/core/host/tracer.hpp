// SPDX-License-Identifier: Apache-2.0
// The times of one rank's step. Actions are stamped by the thread of their lane; communications by the thread
// that moves them, under the fabric's lock.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <chrono>
#include <deque>

namespace rankc::runtime::host {

/// Units: microseconds of a clock that all ranks share.
inline double now() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class tracer {
 public:
  explicit tracer(int rank) : rank_(rank) {}

  /// The action before ends here.
  void begin(const char* action) {
    end();
    began_ = now();
    action_ = &did_.emplace_back(rank_, 0, action, began_, began_);
  }
  void end() {
    if (action_ != nullptr) action_->end = now();
    action_ = nullptr;
  }

  /// Wait on lane 0; an action that has computed nothing yet begins after it.
  template <class Wait>
  void wait(Wait for_it) {
    const bool first = now() - began_ < runtime::idle_before_wait;
    for_it();
    if (action_ != nullptr && first) began_ = action_->begin = now();
  }

  /// A place for the times of a communication, or of an action on another lane, kept until `take`.
  runtime::traced* place(int lane, const char* name) {
    return &did_.emplace_back(rank_, lane, name, 0.0, 0.0);
  }

  /// Hand over the times since `start`, in the order of issue.
  void take(double start, std::vector<runtime::traced>& into) {
    for (runtime::traced& t : did_) into.push_back({t.rank, t.lane, t.name, t.begin - start, t.end - start});
    did_.clear();
  }

 private:
  int rank_;
  double began_ = 0;  // of the action under way, its first waits left out
  runtime::traced* action_ = nullptr;
  std::deque<runtime::traced> did_;  // nothing in it moves
};

}  // namespace rankc::runtime::host
