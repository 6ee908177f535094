// SPDX-License-Identifier: Apache-2.0
// Runs tasks in separate processes, several at a time: a crash or a hang of one is an outcome, and loses no
// result of the others.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

/// Sends lines from a child to its parent. Each is written at once, so that it survives a crash.
class teller {
 public:
  explicit teller(int to) : to_(to) {}
  void line(std::string_view text) const;

 private:
  int to_;
};

struct outcome {
  std::vector<std::string> lines;
  std::string printed;  // on the child's standard output and standard error
  std::string died;  // the cause of its death, if any: "signal 11 (Segmentation fault)", "time limit of 60 s"
};

using task = std::function<void(const teller&)>;

/// Run the tasks, `at_once` at a time, each for at most `limit_s` seconds times RANKC_TEST_SLOWNESS. An
/// exception that leaves a task counts as its death.
std::vector<outcome> run_isolated(const std::vector<task>&, int at_once, int limit_s);

}  // namespace fuzz
