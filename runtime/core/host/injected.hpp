// SPDX-License-Identifier: Apache-2.0
// An injected fault of a host rank, and its state.
#pragma once
#include <rankc/runtime/injection.hpp>

namespace rankc::runtime::host {

class injected {
 public:
  explicit injected(const runtime::injection& what) : what_(what) {}

  /// Starts the fault if this is its moment: a call, the end of a step, a save.
  void meet(runtime::injection::moment, std::int64_t step, std::uint64_t call);
  /// Called when the step runs again, so that a result of an op is spoilt again.
  void begin_again() { has_begun_ = has_begun_ && what_.what != runtime::injection::fault::nan; }
  /// True if the fault applies to the next communication or computed value. It applies once.
  bool takes(runtime::injection::fault);

 private:
  const runtime::injection what_;
  bool has_begun_ = false, is_due_ = false;
};

struct rank;

/// Injects the fault of a rank whose step has ended.
void meet_fault_after_step(const rank&);

}  // namespace rankc::runtime::host
