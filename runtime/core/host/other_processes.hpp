// SPDX-License-Identifier: Apache-2.0
// The other processes of a program, for the engine of one rank: the connections for data, and the values that
// all processes share at the end of a step. Without other processes everything here does nothing.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/placement.hpp>

#include <atomic>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace rankc::runtime::host {

using namespace rankc::runtime;

class other_processes {
 public:
  /// Connects this process with the others, if there are any.
  /// Errors: failure (2) if ranks use different libraries.
  explicit other_processes(const placement&, int world);

  /// Null without other processes.
  transport* wires() const { return wires_.get(); }

  /// Sends the values of rank `owner` to all processes.
  void share(int owner, std::span<double> values);
  /// The rank whose results this process waits for, or -1.
  int shared_by() const { return shared_by_; }

  /// Appends the times of the ranks of all processes.
  void gather_times(const std::vector<traced>& own, std::vector<traced>& into);

 private:
  const placement& where_;
  const int world_;
  std::unique_ptr<transport> wires_;
  std::uint64_t shared_ = 0;  // number of shares so far
  std::atomic<int> shared_by_{-1};
  std::set<std::string> names_;  // the names in traces of other processes
};

}  // namespace rankc::runtime::host
