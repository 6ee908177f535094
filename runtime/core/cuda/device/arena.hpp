// SPDX-License-Identifier: Apache-2.0
// The memory of a rank: one allocation of the plan's size, in a form that NCCL can map into other ranks.
#pragma once
#include "buffer.hpp"
#include "teardown.hpp"

#include <cstddef>
#include <memory>

namespace rankc::runtime::cuda {

/// Device memory on the current device. Memory of NCCL's own allocator can be registered with its
/// communicators. Memory of cudaMalloc or of an application cannot.
class arena {
 public:
  /// Allocates from `memory`; with null from NCCL, or from CUDA if NCCL fails.
  /// Errors: failure (70) that names the bytes.
  arena(const rank&, std::size_t bytes, std::pmr::memory_resource* memory);

  std::byte* data() const { return nccl_ != nullptr ? nccl_.get() : other_.as<std::byte>(); }
  bool registrable() const { return nccl_ != nullptr; }

 private:
  struct free_nccl {
    void operator()(std::byte* p) const { check_teardown(ncclMemFree(p), "arena: ncclMemFree"); }
  };
  std::unique_ptr<std::byte, free_nccl> nccl_;
  buffer other_;
};

/// The bytes to register for an arena. NCCL's windows end at multiples of 4096; the allocation covers them.
constexpr std::size_t window_bytes(std::size_t arena_bytes) { return (arena_bytes + 4095) / 4096 * 4096; }

/// Sets the variables that NCCL reads once, before its first call: no multicast, and collectives connect when
/// their communicator is created, not at their first use.
void prepare_nccl();

}  // namespace rankc::runtime::cuda
