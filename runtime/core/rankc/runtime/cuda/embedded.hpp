// SPDX-License-Identifier: Apache-2.0
// A rank of a CUDA program inside another program: its steps are graphs on the application's stream, over the
// application's communicators. The thread that calls waits until the step is done; its current device is as
// it was when a call returns.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>
#include <rankc/runtime/embedded.hpp>

#include <memory_resource>
#include <span>

namespace rankc::runtime::cuda {

/// What the application gives a rank.
struct surroundings {
  int rank = 0;
  int device = 0;
  /// Steps begin after what it holds, and it goes on after them; null: a stream of the rank's own.
  cudaStream_t stream = nullptr;
  /// By the order of the description's; those that the rank takes no part in may be null. Each has at most 16
  /// blocks (ncclConfig_t::maxCTAs): those that are under way at once must all find room on the GPU. They
  /// must outlive the rank. After a failure the application aborts them, before the rank goes.
  std::span<const ncclComm_t> communicators = {};
  /// Null: CUDA's. Pinned memory must be mapped into the device.
  std::pmr::memory_resource *device_memory = nullptr, *pinned_memory = nullptr;
  log_lines log = {};
};

/// Make a rank, together with the other ranks: memory is taken, the steps are tried out and captured, and
/// nothing is made later. Errors: 1 where the surroundings do not fit the program; 70 naming the rank and
/// action that could not be run.
status embed(const program&, const surroundings&, embedded&) noexcept;

}  // namespace rankc::runtime::cuda
