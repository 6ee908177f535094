// SPDX-License-Identifier: Apache-2.0
// When a rank that frees weights after each layer all-gathers them again, by the memory assigned to them.
#pragma once
#include "layers.hpp"

namespace audit {

/// The padded size: gradients and gathered weights begin at multiples of 16 elements.
constexpr std::int64_t room(std::int64_t elements) { return (elements + 15) / 16 * 16; }

/// An all-gather of a layer's weights before an action that reads them.
struct gather {
  std::size_t layer;
  std::string phase;  // phase of the reading action
};

/// The all-gathers of a rank's layers. A layer's weights and those of the next `prefetch` layers have
/// separate memory, placed largest first at the lowest free address; other layers may share it. Weights that
/// are still in memory are not gathered again. A gather waits until nothing reads the memory that it
/// overwrites.
std::vector<gather> gathers_of(const drawn&, int pp, const std::vector<layer>&);

}  // namespace audit
