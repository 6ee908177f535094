// SPDX-License-Identifier: Apache-2.0
// The batch of a step on its way to the GPUs.
#pragma once
#include "worker.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace rankc::cuda {

/// Pinned tokens and targets of every data-parallel coordinate.
class batches {
 public:
  explicit batches(const description& about)
      : microbatch_(static_cast<std::size_t>(about.rows) * about.seq), microbatches_(about.microbatches) {
    const std::size_t count = microbatch_ * static_cast<std::size_t>(microbatches_);
    const std::size_t bytes = 2 * sizeof(std::int32_t) * count * static_cast<std::size_t>(about.dp);
    if (cudaMallocHost(&all_, bytes) != cudaSuccess)
      throw failure(70, "install: no " + std::to_string(bytes) + " bytes of pinned memory for the batches");
    std::fill_n(all_, bytes / sizeof(std::int32_t), 0);
    for (int dp = 0; dp < about.dp; ++dp) {
      const std::int32_t* tokens = all_ + 2 * count * static_cast<std::size_t>(dp);
      of_.push_back({tokens, tokens + count, count * sizeof(std::int32_t)});
    }
  }
  ~batches() { cudaFreeHost(all_); }
  batches(const batches&) = delete;
  batches& operator=(const batches&) = delete;

  const batch& of(int dp) const { return of_[static_cast<std::size_t>(dp)]; }

  void set(int dp, int microbatch, const std::int32_t* tokens, const std::int32_t* targets) {
    if (dp < 0 || dp >= static_cast<int>(of_.size()) || microbatch < 0 || microbatch >= microbatches_)
      throw failure(1, "set_batch: dp " + std::to_string(dp) + ", microbatch " + std::to_string(microbatch) +
                           "; the plan has " + std::to_string(of_.size()) + " and " +
                           std::to_string(microbatches_) + " of them, counted from 0");
    std::int32_t* at = all_ + (of(dp).tokens - all_) + microbatch_ * static_cast<std::size_t>(microbatch);
    std::copy_n(tokens, microbatch_, at);
    std::copy_n(targets, microbatch_, at + (of(dp).targets - of(dp).tokens));
  }

 private:
  std::size_t microbatch_;  // tokens of one
  int microbatches_;
  std::int32_t* all_ = nullptr;  // (dp, tokens | targets, microbatches, rows * seq)
  std::vector<batch> of_;
};

}  // namespace rankc::cuda
