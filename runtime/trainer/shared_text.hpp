// SPDX-License-Identifier: Apache-2.0
// A text that one process of a job has and all need.
#pragma once
#include <rankc/runtime/placement.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace rankc::runtime {

/// The text of all processes that sorts first; empty if all are empty. All processes call it.
inline std::string first_of_all(const placement& where, const char* name, const std::string& mine) {
  std::vector<std::string> found{mine};
  if (where.meets_others()) found = where.exchange(name, mine);
  std::erase(found, "");
  return found.empty() ? "" : *std::min_element(found.begin(), found.end());
}

}  // namespace rankc::runtime
