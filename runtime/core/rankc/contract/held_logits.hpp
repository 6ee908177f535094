// SPDX-License-Identifier: Apache-2.0
// How long a row of logits may be to wait in a block's shared memory for its sum: the runtime keeps to it,
// and predictions count a longer one's second reading.
#pragma once
#include <rankc/contract/targets.hpp>
#include <cstddef>

namespace rankc::runtime::cuda {

/// Units: bytes. Two rows, with what a block has beside, are in the 228 KiB of a multiprocessor.
inline constexpr std::size_t held_logits = 112 * 1024;

}  // namespace rankc::runtime::cuda
