// SPDX-License-Identifier: Apache-2.0
// What a rank takes of its GPU beside its arena, in bytes: plans count on it, the runtime keeps to it.
#pragma once
#include <rankc/contract/targets.hpp>
#include <cstddef>

namespace rankc::runtime::cuda {

/// Scratch for cuBLASLt and for the partial sums of parameter gradients: of each lane that computes.
inline constexpr std::size_t workspace_bytes = std::size_t{64} << 20;

/// What is rounded to bf16 of gradients at a time, to be sent: of each lane that sums them so.
inline constexpr std::size_t rounded_bytes = std::size_t{256} << 20;

/// A bound for CUDA's context, kernels, graphs and library handles.
/// Source: measured on H200s with CUDA 13.0: 612 MiB with one workspace.
inline constexpr std::size_t context_bytes = std::size_t{576} << 20;

/// Bounds for NCCL: its kernels, once, and its buffers of one communicator, of any size, with `most_blocks`
/// (communicators.hpp) blocks.
/// Source: the most that programs of two H200s took until they were installed, NCCL 2.28, beside the arena:
/// 1251 and 1459 MiB with one communicator, 1823 to 1890 with two, 2928 with four, 3345 with five.
inline constexpr std::size_t nccl_bytes = std::size_t{336} << 20, communicator_bytes = std::size_t{512} << 20;

/// What a rank opens. A pipeline edge is one direction between two ranks.
struct opened {
  int computing_lanes = 1;
  int groups = 0;  // communicators that are no pipeline edges
  int edges = 0;
  int rounding_lanes = 0;
};

/// Where ranks are processes, NCCL carries every edge, and all ranks meet in one more communicator. Where
/// they are threads and their GPUs map each other's memory, an edge takes nothing.
enum class edges_by { nccl, mapped };
constexpr int count_communicators(const opened& o, edges_by by, int world) {
  if (by == edges_by::mapped) return o.groups;
  return o.groups + o.edges + (world > 1 ? 1 : 0);
}

/// A bound of all that the rank takes, its context included.
constexpr std::size_t bytes_beside_arena(const opened& o, edges_by by, int world) {
  const int communicators = count_communicators(o, by, world);
  return context_bytes + workspace_bytes * static_cast<std::size_t>(o.computing_lanes) +
         rounded_bytes * static_cast<std::size_t>(o.rounding_lanes) + (communicators ? nccl_bytes : 0) +
         communicator_bytes * static_cast<std::size_t>(communicators);
}

}  // namespace rankc::runtime::cuda
