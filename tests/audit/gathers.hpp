// SPDX-License-Identifier: Apache-2.0
// When a rank that lets go of weights after each layer gathers them again: by the memory that they have.
#pragma once
#include "layers.hpp"

namespace audit {

/// Sums and gathered weights have room for tensors that begin at multiples of 16 elements.
constexpr std::int64_t room(std::int64_t elements) { return (elements + 15) / 16 * 16; }

/// A layer's weights in front of what reads them.
struct gather {
  std::size_t layer;
  std::string phase;  // of the read
};

/// The gathers of a rank's layers. The weights of layers that are gathered at one time, a layer's and those
/// of as many after it as the plan says, lie apart from each other, the largest first and each as low as it
/// can; others may have the same memory. Weights that are still there are not gathered again, and what comes
/// is gathered once nothing reads the memory that it takes.
std::vector<gather> gathers_of(const drawn&, int pp, const std::vector<layer>&);

}  // namespace audit
