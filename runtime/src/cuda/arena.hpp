// SPDX-License-Identifier: Apache-2.0
// The memory of a rank: one allocation of the plan's size, made so that NCCL can map it into other ranks.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <cstddef>

namespace rankc::cuda {

/// Device memory on the current device. NCCL's own allocator gives memory that can be registered with its
/// communicators; where it refuses, cudaMalloc gives memory that cannot.
class arena {
 public:
  arena() = default;
  /// Errors: failure (70) naming the bytes.
  arena(const rank&, std::size_t bytes);
  ~arena();
  arena(arena&&) noexcept;
  arena& operator=(arena&&) noexcept;

  std::byte* data() const { return data_; }
  bool registrable() const { return registrable_; }

 private:
  std::byte* data_ = nullptr;
  bool registrable_ = false;
};

/// Bytes to register for an arena: NCCL's windows end at multiples of 4096, which the allocation covers.
constexpr std::size_t window_bytes(std::size_t arena_bytes) { return (arena_bytes + 4095) / 4096 * 4096; }

/// Settings that NCCL reads once, before its first call: no multicast; collectives connect when their
/// communicator is made and not at their first use.
void prepare_nccl();

}  // namespace rankc::cuda
