// SPDX-License-Identifier: Apache-2.0
// The resources of one rank on its device: arena, lanes, events and library handles. `install` makes
// one per rank of a program; a test or a tool may make one alone and call kernels on its rank. The
// communicators belong to the engine, which makes them for all ranks together.
#pragma once
#include <rankc/contract/device_memory.hpp>
#include <rankc/runtime/cuda/rank.hpp>

#include <functional>
#include <memory>
#include <memory_resource>

namespace rankc::runtime::cuda {

class arena;   // arena.hpp
class buffer;  // buffer.hpp

/// Where a rank's memory comes from; null: CUDA. Pinned memory is mapped into the device.
struct memory_sources {
  std::pmr::memory_resource *device = nullptr, *pinned = nullptr;
};

/// The resources of one rank. Construct, use and destroy it with the same `device`.
class context {
 public:
  /// The algorithms of its products are chosen together with all ranks that have the same `choices`; null: by
  /// itself.
  /// Errors: failure (70) naming the rank and what could not be had.
  context(int device, const description&, int rank_index, const memory_sources& = {},
          std::shared_ptr<product_choices> choices = nullptr);
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  rank& of() { return r_; }
  const rank& of() const { return r_; }
  int device() const { return device_; }

  bool arena_is_registrable() const;

  /// Memory beside the arena, which the context keeps. Errors: failure (70) naming `what`.
  std::byte* more_on_device(std::size_t bytes, const char* what);
  std::byte* more_pinned(std::size_t bytes, const char* what);

  /// Set the hyperparameters of the next step, in pinned memory; `copy_input` brings them to the device.
  void set_input(const step_input&);

  /// Enqueue the copy of the hyperparameters on lane 0.
  void copy_input();

  /// Enqueue a step: all lanes start after what lane 0 holds, and lane 0 ends after all lanes.
  void enqueue(void (*body)(rank&));

  /// What `work` enqueues, as a graph; the caller destroys it.
  cudaGraphExec_t capture(const std::function<void()>& work);

  /// Zero the arena and fill its rope tables; waits for the device.
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
