// SPDX-License-Identifier: Apache-2.0
// A fault on purpose of a rank of the host, and what of it is still to come.
#pragma once
#include <rankc/runtime/injection.hpp>

namespace rankc::runtime::host {

class injected {
 public:
  explicit injected(const runtime::injection& what) : what_(what) {}

  /// The fault, where this is its moment: a call, the end of a step, a save.
  void meet(runtime::injection::moment, std::int64_t step, std::uint64_t call);
  /// The step is run again: what an op makes is spoilt again.
  void begin_again() { has_begun_ = has_begun_ && what_.what != runtime::injection::fault::nan; }
  /// Whether the next communication, or computed value, is to have it; it has it once.
  bool takes(runtime::injection::fault);

 private:
  const runtime::injection what_;
  bool has_begun_ = false, is_due_ = false;
};

struct rank;

/// The fault of a rank whose step has ended.
void meet_fault_after_step(const rank&);

}  // namespace rankc::runtime::host
