// SPDX-License-Identifier: Apache-2.0
// The contents of each value of a program, from its write to its last read.
#pragma once
#include <rankc/codegen/program.hpp>

#include <vector>

#include "contents.hpp"

namespace rankc::codegen::algebra {

/// The maximum number of parts that the store holds at once, over all values that later ops read.
inline constexpr std::int64_t most_parts_at_once = 1 << 22;

class store {
 public:
  /// `most_parts`: the maximum number of parts of one value. The norm has at most two for each gradient.
  store(const program&, std::int64_t most_parts);

  /// The contents of the bytes that an access reads.
  /// Errors: refusal where no op wrote the value, or its write had other bytes.
  content& at(const access&);
  bool has(const access& a) const { return slot_of_[static_cast<std::size_t>(a.value)] >= 0; }
  const content& of(int value) const {
    return slots_[static_cast<std::size_t>(slot_of_[static_cast<std::size_t>(value)])];
  }
  void put(const access&, content);
  /// Frees the values that no later op reads.
  void done(const std::vector<access>& reads);

 private:
  void count_parts(const content&);

  const std::int64_t most_parts_;
  std::int64_t parts_ = 0;                 // sum over all values
  std::vector<int> slot_of_, reads_left_;  // by value
  std::deque<content> slots_;
  std::vector<int> free_;
};

}  // namespace rankc::codegen::algebra
