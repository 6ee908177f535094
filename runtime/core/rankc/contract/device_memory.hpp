// SPDX-License-Identifier: Apache-2.0
// The GPU memory that a rank uses outside its arena, in bytes. Plans count it, and the runtime uses no more.
#pragma once
#include <rankc/contract/targets.hpp>
#include <cstddef>

namespace rankc::runtime::cuda {

/// Scratch for cuBLASLt and for partial sums of parameter gradients, for each lane that computes.
inline constexpr std::size_t workspace_bytes = std::size_t{64} << 20;

/// The buffer in which gradients are rounded to bf16 before they are sent. Each lane that reduces in bf16 has
/// one.
inline constexpr std::size_t rounded_bytes = std::size_t{256} << 20;

/// An upper bound for CUDA's context, kernels, graphs and library handles.
/// Source: measured on H200s with CUDA 13.0: 612 MiB with one workspace.
inline constexpr std::size_t context_bytes = std::size_t{576} << 20;

/// Upper bounds for NCCL: its kernels, which are loaded once, and its buffers for one communicator. A
/// communicator may have any size, with `most_blocks` (communicators.hpp) blocks.
/// Source: the largest use of programs on two H200s until they were set up, NCCL 2.28, without the arena:
/// 1251 and 1459 MiB with one communicator, 1823 to 1890 with two, 2928 with four, 3345 with five.
inline constexpr std::size_t nccl_bytes = std::size_t{336} << 20, communicator_bytes = std::size_t{512} << 20;

/// The lanes and communicators that a rank opens. A pipeline edge is one direction between two ranks.
struct opened {
  int computing_lanes = 1;
  int groups = 0;  // communicators other than pipeline edges
  int edges = 0;
  int rounding_lanes = 0;
};

/// The transport of pipeline edges. If ranks are processes, NCCL carries every edge, and one more
/// communicator contains all ranks. If ranks are threads whose GPUs map each other's memory, an edge needs no
/// memory.
enum class edges_by { nccl, mapped };
constexpr int count_communicators(const opened& o, edges_by by, int world) {
  if (by == edges_by::mapped) return o.groups;
  return o.groups + o.edges + (world > 1 ? 1 : 0);
}

/// An upper bound of all GPU memory outside the arena, CUDA's context included.
constexpr std::size_t bytes_beside_arena(const opened& o, edges_by by, int world) {
  const int communicators = count_communicators(o, by, world);
  return context_bytes + workspace_bytes * static_cast<std::size_t>(o.computing_lanes) +
         rounded_bytes * static_cast<std::size_t>(o.rounding_lanes) + (communicators ? nccl_bytes : 0) +
         communicator_bytes * static_cast<std::size_t>(communicators);
}

}  // namespace rankc::runtime::cuda
