// SPDX-License-Identifier: Apache-2.0
// Reductions of f32 that are sent as bf16: rounding before they are sent, and widening after they have
// arrived.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <cassert>

namespace rankc::runtime::cuda {

/// The data sent in one call, for up to `most` tensors. Each member receives its part of each tensor, one
/// part after the other. Parts start at multiples of 16 bytes, and the gaps between them are zero.
struct rounded_parts {
  static constexpr int most = 16;
  static constexpr std::size_t aligned = 16 / sizeof(bf16);
  struct part {
    float* to;           // the rank's part of the sum
    const float* from;   // the first member's part
    std::size_t stride;  // from one member's part to the next member's
    std::size_t count;
    std::size_t at;  // offset in the data for a member
  };
  std::size_t members;
  std::size_t length = 0;  // length of the data for a member, a multiple of `aligned`
  int many = 0;
  part parts[most]{};

  bool is_full() const { return many == most; }
  void add(float* to, const float* from, std::size_t stride, std::size_t count) {
    assert(!is_full());
    parts[many++] = {to, from, stride, count, length};
    length += (count + aligned - 1) / aligned * aligned;
  }
};

/// Rounds the parts to nearest.
/// Shapes: to (members, length).
void round_parts(const lane&, bf16* to, const rounded_parts&);

/// Widens the data that has arrived for the rank.
/// Shapes: from (length).
void widen_parts(const lane&, const bf16* from, const rounded_parts&);

}  // namespace rankc::runtime::cuda
