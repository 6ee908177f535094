// SPDX-License-Identifier: Apache-2.0
// What one rank owns on its device: arena, streams, events, workspace and library handles. `install` makes
// one per rank of a program; a test or a tool may make one alone and call kernels on its rank. The
// communicators belong to the engine, which makes them for all ranks together.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

namespace rankc::cuda {

/// Scratch beside the arena, for cuBLASLt and for the partial sums of parameter gradients.
inline constexpr std::size_t workspace_bytes = std::size_t{64} << 20;

/// AdamW's factors of a step.
/// Source: Loshchilov and Hutter 2019, arranged as PyTorch computes it.
hyperparameters factors_of(const step_input&);

/// The resources of one rank. Construct, use and destroy it with the same `device`.
class context {
 public:
  /// Errors: failure (70) naming the rank and what could not be had.
  context(int device, const description&, int rank_index);
  ~context();
  context(const context&) = delete;
  context& operator=(const context&) = delete;

  rank& of() { return r_; }
  int device() const { return device_; }

  /// Put a step's hyperparameters before what the compute stream runs next.
  void set_input(const step_input&);

  /// Enqueue a step: all streams start after what compute holds, and compute ends after all streams.
  void enqueue(void (*body)(rank&));

  /// The same as a graph, captured from the streams; the caller destroys it.
  cudaGraphExec_t capture(void (*body)(rank&));

 private:
  void release();

  int device_;
  rank r_;
  cudaEvent_t fork_ = nullptr;
  cudaEvent_t join_[n_streams]{};
  hyperparameters* staged_ = nullptr;  // pinned
};

}  // namespace rankc::cuda
