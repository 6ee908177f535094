// SPDX-License-Identifier: Apache-2.0
// Words in pinned memory that lanes write and wait for by themselves: no kernel has to find room beside those that compute.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <cstdint>

namespace rankc::cuda {

/// All that the lane holds comes before. Errors: failure (70).
void write_word(const lane&, volatile std::uint32_t* word, std::uint32_t value);

/// Hold the lane until the word is 1, and make it 0. Errors: failure (70).
void take_word(const lane&, volatile std::uint32_t* word);

}  // namespace rankc::cuda
