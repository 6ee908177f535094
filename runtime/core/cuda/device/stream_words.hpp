// SPDX-License-Identifier: Apache-2.0
// Words in pinned memory that streams write and wait for without a kernel, so that no such kernel has to fit
// on the GPU together with computation.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include "buffer.hpp"

#include <cstdint>
#include <thread>

namespace rankc::runtime::cuda {

/// Words that are 0 at first.
class stream_words {
 public:
  /// Allocates `count` words.
  /// Errors: failure (70) if there is no pinned memory.
  stream_words(const rank&, std::size_t count, const char* what);
  volatile std::uint32_t* at(std::size_t i) const { return words_.as<volatile std::uint32_t>() + i; }
  /// Keeps every word at 1, so that no lane waits any longer, after a rank has failed.
  void let_go();

 private:
  void set(std::uint32_t value) const;

  buffer words_;
  std::size_t count_;
  std::jthread letting_go_;
};

/// Enqueues a write of the word after the work that the lane holds.
/// Errors: failure (70).
void write_word(const lane&, volatile std::uint32_t* word, std::uint32_t value);

/// Makes the lane wait until the word is 1, then sets it to 0.
/// Errors: failure (70).
void take_word(const lane&, volatile std::uint32_t* word);

}  // namespace rankc::runtime::cuda
