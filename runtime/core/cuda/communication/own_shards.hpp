// SPDX-License-Identifier: Apache-2.0
// What a rank keeps of tensors that are gathered, to its place among what others send.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <cassert>

namespace rankc::runtime::cuda {

/// Of up to `most` tensors. Units: bytes.
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

/// By one kernel, for beside computation each waits until a large one ends. None where there are no shards.
void place_own_shards(const lane&, const own_shards&);

}  // namespace rankc::runtime::cuda
