// SPDX-License-Identifier: Apache-2.0
// Sums on their way between GPUs: f32 rounded to bf16 to be sent, and widened where it has arrived.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <cassert>

namespace rankc::runtime::cuda {

/// What is sent at a time, of up to `most` tensors: to each member its part of each, side by side. Parts
/// begin at multiples of 16 bytes; what lies between them is zero.
struct rounded_parts {
  static constexpr int most = 16;
  static constexpr std::size_t aligned = 16 / sizeof(bf16);
  struct part {
    float* to;           // of the rank's sum
    const float* from;   // of the first member's part
    std::size_t stride;  // from one member's part to the next one's
    std::size_t count;
    std::size_t at;  // in what is sent to a member
  };
  std::size_t members;
  std::size_t length = 0;  // of what is sent to a member, a multiple of `aligned`
  int many = 0;
  part parts[most]{};

  bool is_full() const { return many == most; }
  void add(float* to, const float* from, std::size_t stride, std::size_t count) {
    assert(!is_full());
    parts[many++] = {to, from, stride, count, length};
    length += (count + aligned - 1) / aligned * aligned;
  }
};

/// Rounded to nearest. Shapes: to (members, length).
void round_parts(const lane&, bf16* to, const rounded_parts&);

/// What has arrived for the rank. Shapes: from (length).
void widen_parts(const lane&, const bf16* from, const rounded_parts&);

}  // namespace rankc::runtime::cuda
