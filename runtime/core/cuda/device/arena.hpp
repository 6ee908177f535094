// SPDX-License-Identifier: Apache-2.0
// The memory of a rank: one allocation of the plan's size, made so that NCCL can map it into other ranks.
#pragma once
#include "buffer.hpp"
#include "teardown.hpp"

#include <cstddef>
#include <memory>

namespace rankc::runtime::cuda {

/// Device memory on the current device. NCCL's own allocator gives memory that can be registered with its
/// communicators; what cudaMalloc, or an application, gives cannot.
class arena {
 public:
  /// From `memory`; null: from NCCL, and where it refuses from CUDA.
  /// Errors: failure (70) naming the bytes.
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

/// Bytes to register for an arena: NCCL's windows end at multiples of 4096, which the allocation covers.
constexpr std::size_t window_bytes(std::size_t arena_bytes) { return (arena_bytes + 4095) / 4096 * 4096; }

/// Settings that NCCL reads once, before its first call: no multicast; collectives connect when their
/// communicator is made and not at their first use.
void prepare_nccl();

}  // namespace rankc::runtime::cuda
