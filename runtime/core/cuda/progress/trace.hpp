// SPDX-License-Identifier: Apache-2.0
// The times of one rank's step on its GPU. A kernel of one thread stores the GPU's clock at the beginning and
// end of each action, wait and communication, or of each call. A communication begins when its lane reaches
// it, so its time includes the wait for the other ranks. In a step that is not timed nothing is enqueued. For
// a profiler, actions are NVTX ranges of the enqueuing thread, and lanes have names.
#pragma once
#include "../device/check.hpp"
#include "kept_failure.hpp"

#include <vector>

namespace rankc::runtime::cuda {

class tracer {
 public:
  /// Allocates the stamps.
  /// Errors: failure (70) if the device has no memory for them.
  explicit tracer(rank&);
  ~tracer();
  tracer(const tracer&) = delete;
  tracer& operator=(const tracer&) = delete;

  /// During its lifetime everything that is enqueued or captured gets stamps, by action or by call, in a new
  /// list.
  class recording {
   public:
    recording(tracer& t, bool by_calls) : rank_(t.rank_) {
      t.entries_.clear();
      t.end_.forget();
      t.stamps_ = 0;
      (by_calls ? rank_.calls : rank_.trace) = &t;
    }
    ~recording() { rank_.trace = rank_.calls = nullptr; }
    recording(const recording&) = delete;
    recording& operator=(const recording&) = delete;

   private:
    rank& rank_;
  };

  enum class what {
    step,
    action,
    wait,
    alone
  };  // alone: a communication, an action on a lane other than 0, or a call

  /// Stamps the beginning of an entry on a lane.
  /// Errors: failure (70) if a step has too many stamps, or if the launch of this stamp, or of an earlier
  /// one, fails.
  std::size_t begin(what, const lane&, const char* name);
  /// Stamps the entry's end. A failure is kept for the next call that throws, because destructors call this.
  void end(std::size_t entry) noexcept;

  /// The times of the last replay, in the order of issue. The device must have finished it.
  /// Units: microseconds since the rank's first stamp. Clocks of two GPUs may differ, and each rank has its
  /// own zero.
  void take(std::vector<traced>& into);

 private:
  struct entry {
    what of;
    const lane* on;
    const char* name;
    std::size_t begin, end;  // stamps
  };
  static constexpr std::size_t most_stamps = 1 << 16;

  std::size_t stamp(const lane&);

  rank& rank_;
  std::vector<entry> entries_;
  std::size_t stamps_ = 0;
  kept_failure end_;
  unsigned long long* times_ = nullptr;  // device memory, nanoseconds
};

/// Times the work that is enqueued on a lane during its lifetime: a communication on a lane that does not
/// compute, or a wait of lane 0.
class stamped {
 public:
  stamped(const lane& on, tracer::what of, const char* name)
      : trace_(is_timed(on, of) ? on.of->trace : nullptr) {
    if (trace_ != nullptr) entry_ = trace_->begin(of, on, name);
  }
  ~stamped() {
    if (trace_ != nullptr) trace_->end(entry_);
  }
  stamped(const stamped&) = delete;
  stamped& operator=(const stamped&) = delete;

 private:
  static bool is_timed(const lane& on, tracer::what of) {
    return of == tracer::what::wait ? on.index == 0 : !on.computes();
  }

  tracer* trace_;
  std::size_t entry_ = 0;
};

/// Times an action on a lane other than 0 during its lifetime.
class stamped_action {
 public:
  stamped_action(const lane&, const char* name);
  ~stamped_action();
  stamped_action(const stamped_action&) = delete;
  stamped_action& operator=(const stamped_action&) = delete;

 private:
  tracer* const trace_;
  const lane& on_;
  std::size_t entry_ = 0;
};

/// Mark the beginning of a step's body, of its next action, and its end.
void begin_step(rank&);
void begin_action(const lane&, const char* name);
void end_step(rank&);

/// Names the rank's lanes for a profiler.
void name_lanes(const rank&);

}  // namespace rankc::runtime::cuda
