// SPDX-License-Identifier: Apache-2.0
// Copies a rank's own shards of gathered tensors to their places among the others' shards.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <cassert>

namespace rankc::runtime::cuda {

/// The copies of up to `most` tensors.
/// Units: bytes.
struct own_shards {
  static constexpr int most = 32;
  struct shard {
    std::byte* to;
    const std::byte* from;
    std::size_t bytes;
  };
  int many = 0;
  shard shards[most]{};

  bool is_full() const { return many == most; }
  void add(void* to, const void* from, std::size_t bytes) {
    assert(!is_full());
    shards[many++] = {static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes};
  }
};

/// Copies all shards with one kernel, because each small kernel that overlaps computation waits for a large
/// one to end. Launches nothing without shards.
void place_own_shards(const lane&, const own_shards&);

}  // namespace rankc::runtime::cuda
