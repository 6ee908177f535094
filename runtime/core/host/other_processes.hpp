// SPDX-License-Identifier: Apache-2.0
// The other processes of a program, as the engine of one rank uses them: the connections for data, what every
// process is to know at the end of a step, and what each is asked while it runs. Without others all of it
// does nothing.
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
  /// Errors: failure (2) where ranks run other libraries.
  explicit other_processes(const placement&, int world);

  /// Null where there are no others.
  transport* wires() const { return wires_.get(); }

  /// Give what one rank's process has to all processes.
  void share(int owner, std::span<double> values);
  /// The rank whose results are waited for, or -1.
  int shared_by() const { return shared_by_; }

  /// Append the times of all processes' ranks.
  void gather_times(const std::vector<traced>& own, std::vector<traced>& into);

 private:
  const placement& where_;
  const int world_;
  std::unique_ptr<transport> wires_;
  std::uint64_t shared_ = 0;  // what was shared so far
  std::atomic<int> shared_by_{-1};
  std::set<std::string> names_;  // of what ranks in other processes did
};

}  // namespace rankc::runtime::host
