// SPDX-License-Identifier: Apache-2.0
// Words in pinned memory that lanes write and wait for by themselves: no kernel has to find room beside those
// that compute.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include "buffer.hpp"

#include <cstdint>
#include <thread>

namespace rankc::runtime::cuda {

/// Words that are 0, until no lane shall wait for one any longer.
class stream_words {
 public:
  /// Errors: failure (70) where there is no pinned memory for them.
  stream_words(const rank&, std::size_t count, const char* what);
  volatile std::uint32_t* at(std::size_t i) const { return words_.as<volatile std::uint32_t>() + i; }
  /// From here on every word is 1 for whoever waits: a rank has failed.
  void let_go();

 private:
  void set(std::uint32_t value) const;

  buffer words_;
  std::size_t count_;
  std::jthread letting_go_;
};

/// All that the lane holds comes before. Errors: failure (70).
void write_word(const lane&, volatile std::uint32_t* word, std::uint32_t value);

/// Hold the lane until the word is 1, and make it 0. Errors: failure (70).
void take_word(const lane&, volatile std::uint32_t* word);

}  // namespace rankc::runtime::cuda
