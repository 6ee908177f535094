// SPDX-License-Identifier: Apache-2.0
// A rank of a CUDA program inside another program. Its steps are graphs on the application's stream and use
// the application's communicators. The calling thread waits until the step is done. Its current device is
// unchanged when a call returns.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>
#include <rankc/runtime/embedded.hpp>

#include <memory_resource>
#include <span>

namespace rankc::runtime::cuda {

/// The resources that the application gives a rank.
struct surroundings {
  int rank = 0;
  int device = 0;
  /// A step begins after the work on this stream, and later work on the stream follows the step. Null: the
  /// rank has its own stream.
  cudaStream_t stream = nullptr;
  /// In the order of the description's communicators. An entry may be null if the rank is not a member. Each
  /// has at most 16 blocks (ncclConfig_t::maxCTAs), because all communicators that are active at once must
  /// fit on the GPU. They must outlive the rank. After a failure the application aborts them before it
  /// destroys the rank.
  std::span<const ncclComm_t> communicators = {};
  /// Null: CUDA's allocator. Pinned memory must be mapped into the device.
  std::pmr::memory_resource *device_memory = nullptr, *pinned_memory = nullptr;
  log_lines log = {};
};

/// Makes a rank together with the other ranks: allocates memory, runs the steps once and captures them.
/// Nothing is created later.
/// Errors: 1 if the surroundings do not fit the program; 70 that names the rank and the action that failed.
status embed(const program&, const surroundings&, embedded&) noexcept;

}  // namespace rankc::runtime::cuda
