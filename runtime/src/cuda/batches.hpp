// SPDX-License-Identifier: Apache-2.0
// The batch of a step on its way to the GPUs.
#pragma once
#include "driver.hpp"

#include <algorithm>
#include <vector>

namespace rankc::cuda {

/// Pinned tokens and targets of every data-parallel coordinate.
class batches {
 public:
  /// In pinned memory that `owner` keeps.
  batches(const description& about, context& owner)
      : about_(about), microbatch_(about.tokens_of_microbatch()) {
    const std::size_t count = microbatch_ * static_cast<std::size_t>(about.microbatches);
    const std::size_t bytes = 2 * sizeof(std::int32_t) * count * static_cast<std::size_t>(about.dp);
    all_ = reinterpret_cast<std::int32_t*>(owner.more_pinned(bytes, "batches"));
    std::fill_n(all_, bytes / sizeof(std::int32_t), 0);
    for (int dp = 0; dp < about.dp; ++dp) {
      const std::int32_t* tokens = all_ + 2 * count * static_cast<std::size_t>(dp);
      of_.push_back({tokens, tokens + count, count * sizeof(std::int32_t)});
    }
  }

  const batch& of(int dp) const { return of_[static_cast<std::size_t>(dp)]; }

  void set(int dp, int microbatch, const std::int32_t* tokens, const std::int32_t* targets) {
    check_batch(about_, dp, microbatch);
    std::int32_t* at = all_ + (of(dp).tokens - all_) + microbatch_ * static_cast<std::size_t>(microbatch);
    std::copy_n(tokens, microbatch_, at);
    std::copy_n(targets, microbatch_, at + (of(dp).targets - of(dp).tokens));
  }

 private:
  const description& about_;
  std::size_t microbatch_;  // tokens of one
  std::int32_t* all_ = nullptr;  // (dp, tokens | targets, microbatches, rows * seq)
  std::vector<batch> of_;
};

}  // namespace rankc::cuda
