// SPDX-License-Identifier: Apache-2.0
// Shows the progress of a long search on one line of a terminal.
#pragma once
#include <chrono>
#include <ostream>

#include "plan_search.hpp"

namespace rankc::tool {

class progress_line {
 public:
  progress_line(std::ostream& out, bool is_terminal) : out_(out), is_terminal_(is_terminal) {}
  progress_line(const progress_line&) = delete;
  ~progress_line() { clear(); }

  plan_progress hears() {
    return [this](const plan_search::looked_at& so_far, std::size_t open) { show(so_far, open); };
  }
  void clear() {
    if (is_shown_) out_ << "\r\x1b[K" << std::flush;
    is_shown_ = false;
  }

 private:
  using clock = std::chrono::steady_clock;
  void show(const plan_search::looked_at& so_far, std::size_t open) {
    constexpr std::chrono::milliseconds often{200};
    if (!is_terminal_ || clock::now() < next_) return;
    next_ = clock::now() + often;
    is_shown_ = true;
    out_ << fmt::format("\r{} plans timed, {} judged, {} to look at\x1b[K", so_far.predicted, so_far.judged,
                        open)
         << std::flush;
  }

  std::ostream& out_;
  const bool is_terminal_;
  bool is_shown_ = false;
  clock::time_point next_ = clock::now() + std::chrono::milliseconds(500);
};

}  // namespace rankc::tool
