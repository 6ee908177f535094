// SPDX-License-Identifier: Apache-2.0
// The resources of one rank on its device: arena, lanes, events and library handles. `install` makes one per
// rank of a program. A test or a tool may make one by itself and call kernels on its rank. The engine owns
// the communicators and creates them for all ranks together.
#pragma once
#include <rankc/contract/device_memory.hpp>
#include <rankc/runtime/cuda/rank.hpp>

#include <functional>
#include <memory>
#include <memory_resource>

namespace rankc::runtime::cuda {

class arena;   // arena.hpp
class buffer;  // buffer.hpp

/// The sources of a rank's memory; null: CUDA. Pinned memory is mapped into the device.
struct memory_sources {
  std::pmr::memory_resource *device = nullptr, *pinned = nullptr;
};

/// The resources of one rank. Construct, use and destroy it with the same `device`.
class context {
 public:
  /// Ranks with the same `choices` choose their GEMM algorithms together; with null, the rank chooses by
  /// itself.
  /// Errors: failure (70) that names the rank and the resource that is not available.
  context(int device, const description&, int rank_index, const memory_sources& = {},
          std::shared_ptr<product_choices> choices = nullptr);
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  rank& of() { return r_; }
  const rank& of() const { return r_; }
  int device() const { return device_; }

  bool arena_is_registrable() const;

  /// Allocates memory outside the arena, which the context owns.
  /// Errors: failure (70) that names `what`.
  std::byte* more_on_device(std::size_t bytes, const char* what);
  std::byte* more_pinned(std::size_t bytes, const char* what);

  /// Sets the hyperparameters of the next step, in pinned memory. `copy_input` copies them to the device.
  void set_input(const step_input&);

  /// Enqueues the copy of the hyperparameters on lane 0.
  void copy_input();

  /// Enqueues a step. All lanes start after the work that lane 0 holds, and lane 0 ends after all lanes.
  void enqueue(void (*body)(rank&));

  /// Captures the work that `work` enqueues as a graph. The caller destroys it.
  cudaGraphExec_t capture(const std::function<void()>& work);

  /// Zeroes the arena, fills its rope tables and waits for the device.
  void clear_arena();

 private:
  void open(lane&, int index);
  void release();
  std::byte* more(std::pmr::memory_resource*, std::size_t bytes, const char* what);

  int device_;
  const memory_sources sources_;
  rank r_;
  std::unique_ptr<product_machine> machine_;
  std::shared_ptr<product_choices> choices_;
  std::unique_ptr<arena> arena_;
  std::vector<buffer> more_;
  cudaEvent_t fork_ = nullptr;
  std::vector<cudaEvent_t> join_;      // by lane
  hyperparameters* staged_ = nullptr;  // pinned
};

}  // namespace rankc::runtime::cuda
