// SPDX-License-Identifier: Apache-2.0
// The longest row of logits that stays in a block's shared memory while it is summed. The runtime reads a
// longer row twice, and predictions count the second read.
#pragma once
#include <rankc/contract/targets.hpp>
#include <cstddef>

namespace rankc::runtime::cuda {

/// The longest such row. Two rows and the other data of their blocks fit into the 228 KiB of a
/// multiprocessor.
/// Units: bytes.
inline constexpr std::size_t held_logits = 112 * 1024;

}  // namespace rankc::runtime::cuda
