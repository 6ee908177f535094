// SPDX-License-Identifier: Apache-2.0
// The batch of a step on its way to the GPUs.
#pragma once
#include "driver.hpp"

#include <rankc/runtime/documents.hpp>

#include <algorithm>
#include <vector>

namespace rankc::runtime::cuda {

/// Pinned tokens and targets of every data-parallel coordinate, and of each rank that shares out its
/// sequences; and where the documents of each coordinate's sequences begin.
class batches {
 public:
  /// In pinned memory that `owner` keeps.
  batches(const description& about, context& owner)
      : about_(about), microbatch_(about.tokens_of_microbatch() / static_cast<std::size_t>(about.cp)) {
    const std::size_t count = microbatch_ * static_cast<std::size_t>(about.microbatches);
    const std::size_t whole = about.end_of_document < 0 ? 0 : count * static_cast<std::size_t>(about.cp),
                      of_tokens = 2 * count * static_cast<std::size_t>(about.dp * about.cp);
    const std::size_t bytes = sizeof(std::int32_t) * (of_tokens + whole * static_cast<std::size_t>(about.dp));
    all_ = reinterpret_cast<std::int32_t*>(owner.more_pinned(bytes, "batches"));
    std::fill_n(all_, bytes / sizeof(std::int32_t), 0);
    for (int i = 0; i < about.dp * about.cp; ++i) {
      const std::int32_t* tokens = all_ + 2 * count * static_cast<std::size_t>(i);
      const std::int32_t* starts = all_ + of_tokens + whole * static_cast<std::size_t>(i / about.cp);
      of_.push_back({tokens, tokens + count, count * sizeof(std::int32_t), whole ? starts : nullptr,
                     whole * sizeof(std::int32_t)});
    }
  }

  const batch& of(int dp, int cp) const { return of_[static_cast<std::size_t>(dp * about_.cp + cp)]; }

  void set(int dp, int microbatch, const std::int32_t* tokens, const std::int32_t* targets) {
    check_batch(about_, dp, microbatch);
    if (const std::int32_t* starts = of(dp, 0).starts) {
      std::int32_t* to =
          all_ + (starts - all_) + about_.tokens_of_microbatch() * static_cast<std::size_t>(microbatch);
      find_starts(tokens, about_.rows, about_.seq, about_.end_of_document, to);
    }
    for (int cp = 0; cp < about_.cp; ++cp) {
      const batch& own = of(dp, cp);
      const chunks has{about_.seq, about_.cp, cp};
      std::int32_t* at = all_ + (own.tokens - all_) + microbatch_ * static_cast<std::size_t>(microbatch);
      copy_chunks(tokens, about_.rows, has, at);
      copy_chunks(targets, about_.rows, has, at + (own.targets - own.tokens));
    }
  }

 private:
  const description& about_;
  std::size_t microbatch_;  // tokens of one on a rank
  // (dp, cp, tokens | targets, microbatches, tokens of one), then (dp, microbatches, rows * seq)
  std::int32_t* all_ = nullptr;
  std::vector<batch> of_;
};

}  // namespace rankc::runtime::cuda
