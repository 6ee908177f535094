// SPDX-License-Identifier: Apache-2.0
// A fault on purpose of a rank on a GPU, at the beginning of an action: a kernel holds the GPU up there, and
// the thread that looks on meanwhile does the rest.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <cstdint>

namespace rankc::runtime::cuda {

class injected {
 public:
  /// Errors: failure (2) for a fault that is the host's alone, (70) where there is no pinned memory.
  explicit injected(const injection&);
  ~injected();
  injected(const injected&) = delete;
  injected& operator=(const injected&) = delete;

  /// In a training step, after the beginning of its n-th action has been enqueued.
  void enqueue(const lane&, std::uint64_t action);
  /// The GPU has begun as many actions of a training step.
  void meet(const rank&, std::int64_t step, std::uint64_t actions);

 private:
  const injection what_;
  volatile unsigned* is_over_ = nullptr;  // pinned
};

/// Enqueue a kernel that in one step does not end for some seconds, or until `is_over` is not 0.
void hold_up_device(const lane&, std::uint32_t step, volatile unsigned* is_over, double seconds);

}  // namespace rankc::runtime::cuda
