// SPDX-License-Identifier: Apache-2.0
// Runs a program with arbitrary bytes as arguments, and stops it after a limit.
#pragma once
#include <chrono>
#include <string>
#include <vector>

namespace rankc::test {

struct bounded_run {
  int code = 0;           // 128 + n if signal n ended it
  bool hung = false;      // it did not end within the limit, and was killed
  bool was_told = false;  // SIGTERM was sent
  std::string out, err;
};

/// Run a program in a folder, with an empty standard input. A run that still goes on after `told_after`
/// gets SIGTERM; after `limit` it is killed, with its children.
bounded_run run_bounded(const std::vector<std::string>& words, const std::string& folder,
                        std::chrono::duration<double> told_after, std::chrono::duration<double> limit);

}  // namespace rankc::test
