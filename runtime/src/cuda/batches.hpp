// SPDX-License-Identifier: Apache-2.0
// The batch of a step on its way to the GPUs.
#pragma once
#include "worker.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace rankc::cuda {

/// Pinned tokens and targets of every data-parallel coordinate, and of each rank that shares out its sequences.
class batches {
 public:
  explicit batches(const description& about)
      : has_{about.seq, about.cp, 0}, rows_(about.rows), microbatch_(static_cast<std::size_t>(about.rows) * has_.count()),
        dp_(about.dp), microbatches_(about.microbatches) {
    const std::size_t count = microbatch_ * static_cast<std::size_t>(microbatches_);
    const std::size_t bytes = 2 * sizeof(std::int32_t) * count * static_cast<std::size_t>(about.dp * about.cp);
    if (cudaMallocHost(&all_, bytes) != cudaSuccess)
      throw failure(70, "install: no " + std::to_string(bytes) + " bytes of pinned memory for the batches");
    std::fill_n(all_, bytes / sizeof(std::int32_t), 0);
    for (int i = 0; i < about.dp * about.cp; ++i) {
      const std::int32_t* tokens = all_ + 2 * count * static_cast<std::size_t>(i);
      of_.push_back({tokens, tokens + count, count * sizeof(std::int32_t)});
    }
  }
  ~batches() { cudaFreeHost(all_); }
  batches(const batches&) = delete;
  batches& operator=(const batches&) = delete;

  const batch& of(int dp, int cp) const { return of_[static_cast<std::size_t>(dp * has_.ranks + cp)]; }

  void set(int dp, int microbatch, const std::int32_t* tokens, const std::int32_t* targets) {
    if (dp < 0 || dp >= dp_ || microbatch < 0 || microbatch >= microbatches_)
      throw failure(1, "set_batch: dp " + std::to_string(dp) + ", microbatch " + std::to_string(microbatch) +
                           "; the plan has " + std::to_string(dp_) + " and " +
                           std::to_string(microbatches_) + " of them, counted from 0");
    for (int cp = 0; cp < has_.ranks; ++cp) {
      const batch& own = of(dp, cp);
      const chunks has{has_.seq, has_.ranks, cp};
      std::int32_t* at = all_ + (own.tokens - all_) + microbatch_ * static_cast<std::size_t>(microbatch);
      copy_chunks(tokens, rows_, has, at);
      copy_chunks(targets, rows_, has, at + (own.targets - own.tokens));
    }
  }

 private:
  chunks has_;  // of the first rank of cp
  int rows_;
  std::size_t microbatch_;  // tokens of one on a rank
  int dp_, microbatches_;
  std::int32_t* all_ = nullptr;  // (dp, cp, tokens | targets, microbatches, tokens of one)
  std::vector<batch> of_;
};

}  // namespace rankc::cuda
