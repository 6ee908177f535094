// SPDX-License-Identifier: Apache-2.0
// What each value of a program holds, from its write to its last read.
#pragma once
#include <rankc/codegen/program.hpp>

#include <vector>

#include "contents.hpp"

namespace rankc::codegen::algebra {

class store {
 public:
  explicit store(const program&);

  /// What an access reads.
  /// Errors: refusal where nothing is known to have written it, or other bytes.
  content& at(const access&);
  bool has(const access& a) const { return slot_of_[static_cast<std::size_t>(a.value)] >= 0; }
  const content& of(int value) const {
    return slots_[static_cast<std::size_t>(slot_of_[static_cast<std::size_t>(value)])];
  }
  void put(const access&, content);
  /// The reads of an op are done.
  void done(const std::vector<access>& reads);

 private:
  std::vector<int> slot_of_, reads_left_;  // of each value
  std::deque<content> slots_;
  std::vector<int> free_;
};

}  // namespace rankc::codegen::algebra
