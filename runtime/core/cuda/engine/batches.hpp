// SPDX-License-Identifier: Apache-2.0
// The batch of a step, before its copy to the GPUs.
#pragma once
#include "driver.hpp"

#include <rankc/runtime/documents.hpp>
#include <rankc/runtime/named_inputs.hpp>

#include <algorithm>
#include <vector>

namespace rankc::runtime::cuda {

/// Pinned tokens, targets and declared inputs of every data-parallel coordinate and each of its cp ranks, and
/// the document starts of each coordinate's sequences.
class batches {
 public:
  /// Allocates pinned memory that `owner` keeps.
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
    pin_inputs(owner);
  }

  const batch& of(int dp, int cp) const { return of_[static_cast<std::size_t>(dp * about_.cp + cp)]; }

  void set(int dp, int microbatch, const std::int32_t* tokens, const std::int32_t* targets) {
    check_batch(about_, dp, microbatch);
    if (of(dp, 0).starts != nullptr)
      find_starts(tokens, about_.rows, about_.seq, about_.end_of_document, starts_of(dp, microbatch));
    for (int cp = 0; cp < about_.cp; ++cp) {
      const batch& own = of(dp, cp);
      const chunks has{about_.seq, about_.cp, cp};
      std::int32_t* at = all_ + (own.tokens - all_) + microbatch_ * static_cast<std::size_t>(microbatch);
      copy_chunks(tokens, about_.rows, has, at);
      copy_chunks(targets, about_.rows, has, at + (own.targets - own.tokens));
    }
  }

  /// Sets where the documents of a microbatch begin.
  /// Errors: as check_batch.
  void set_document_starts(int dp, int microbatch, const std::int32_t* starts) {
    check_batch(about_, dp, microbatch);
    if (of(dp, 0).starts != nullptr)
      std::copy_n(starts, about_.tokens_of_microbatch(), starts_of(dp, microbatch));
  }

  /// Sets the declared inputs of a microbatch.
  /// Errors: as check_batch and check_inputs.
  void set_inputs(int dp, int microbatch, std::span<const named_array> given) {
    check_batch(about_, dp, microbatch);
    check_inputs(about_, given);
    for (int cp = 0; cp < about_.cp; ++cp)
      for (std::size_t i = 0; i < inputs_.size(); ++i) {
        const pinned_input& to = of(dp, cp).inputs[i];
        const std::size_t before =
            to.bytes / static_cast<std::size_t>(about_.microbatches) * static_cast<std::size_t>(microbatch);
        store_input(about_, rank_of(dp, cp), inputs_[i], find_array(given, to.name)->values,
                    pinned_inputs_ + (to.from - pinned_inputs_) + before);
      }
  }

 private:
  std::int32_t* starts_of(int dp, int microbatch) {
    return all_ + (of(dp, 0).starts - all_) +
           about_.tokens_of_microbatch() * static_cast<std::size_t>(microbatch);
  }
  static rank_row rank_of(int dp, int cp) { return {.pp = 0, .dp = dp, .tp = 0, .links = {}, .cp = cp}; }

  /// Allocates the declared inputs of each coordinate, one after another, as zeros.
  void pin_inputs(context& owner) {
    constexpr std::size_t apart = 16;
    std::size_t of_coordinate = 0;
    std::vector<pinned_input> each;
    for (const input_row& i : inputs_) {
      const std::size_t bytes =
          bytes_of_input(about_, rank_of(0, 0), i) * static_cast<std::size_t>(about_.microbatches);
      each.push_back({i.name, nullptr, bytes});
      of_coordinate += (bytes + apart - 1) / apart * apart;
    }
    if (inputs_.empty()) return;
    pinned_inputs_ = reinterpret_cast<std::byte*>(owner.more_pinned(of_coordinate * of_.size(), "batches"));
    std::fill_n(pinned_inputs_, of_coordinate * of_.size(), std::byte{0});
    const std::byte* next = pinned_inputs_;
    for (batch& b : of_) {
      b.inputs = each;
      for (pinned_input& i : b.inputs) next = (i.from = next) + (i.bytes + apart - 1) / apart * apart;
    }
  }

  const description& about_;
  std::size_t microbatch_;  // tokens of a microbatch on a rank
  // (dp, cp, tokens | targets, microbatches, tokens of a microbatch), then (dp, microbatches, rows * seq)
  std::int32_t* all_ = nullptr;
  std::vector<batch> of_;
  const std::vector<input_row> inputs_ = inputs_of(about_);
  std::byte* pinned_inputs_ = nullptr;  // (dp, cp, inputs, microbatches, numbers of an input)
};

}  // namespace rankc::runtime::cuda
