// SPDX-License-Identifier: Apache-2.0
// An injected fault of a rank on a GPU, at the beginning of an action. A kernel blocks the GPU there, and
// meanwhile the watching thread carries out the fault.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <cstdint>

namespace rankc::runtime::cuda {

class injected {
 public:
  /// Prepares the fault.
  /// Errors: failure (2) for a fault that only the host supports, (70) if there is no pinned memory.
  explicit injected(const injection&);
  ~injected();
  injected(const injected&) = delete;
  injected& operator=(const injected&) = delete;

  /// Enqueues the blocking kernel. Called in a training step, after the beginning of its n-th action has been
  /// enqueued.
  void enqueue(const lane&, std::uint64_t action);
  /// Carries out the fault if the GPU has begun its action. `actions` is the number of begun actions of the
  /// training step.
  void meet(const rank&, std::int64_t step, std::uint64_t actions);

 private:
  const injection what_;
  volatile unsigned* is_over_ = nullptr;  // pinned
};

/// Enqueues a kernel that in one step runs for some seconds, or until `is_over` is not 0.
void hold_up_device(const lane&, std::uint32_t step, volatile unsigned* is_over, double seconds);

}  // namespace rankc::runtime::cuda
