// SPDX-License-Identifier: Apache-2.0
// The cluster that a plan is for, and clusters with a name.
#pragma once
#include <string_view>

namespace rankc {

/// The cluster that a plan is for.
/// Units: memory in bytes per rank (0: not checked); flops per second and rank, in the plan's precision (0:
///        unknown); bandwidths in bytes per second, rank and direction (0: unknown).
/// Errors: RC110, RC121, from `check_cluster`.
struct cluster {
  int nodes, ranks_per_node;
  long long memory;
  double flops;
  double within_node = 0, between_nodes = 0;
  std::string_view gpu = "";  // for the prediction of step_time
  constexpr bool operator==(const cluster&) const = default;
};

namespace clusters {
/// Nodes of eight H200s.
/// Source: NVIDIA H200 datasheet, 141 GB, 989 TFLOP/s in bf16, NVLink of 900 GB/s in both directions
/// together; NVIDIA DGX H200 datasheet, one ConnectX-7 of 400 Gb/s for each GPU.
template <int Nodes>
inline constexpr cluster h200{Nodes, 8, 141'000'000'000, 989e12, 450e9, 50e9, "h200"};
/// Nodes of eight H100s.
/// Source: NVIDIA H100 datasheet, SXM5: 80 GB, 989 TFLOP/s, NVLink as above; NVIDIA DGX H100 datasheet.
template <int Nodes>
inline constexpr cluster h100{Nodes, 8, 80'000'000'000, 989e12, 450e9, 50e9, "h100"};
/// Nodes of eight A100s.
/// Source: NVIDIA A100 datasheet, SXM: 80 GB, 312 TFLOP/s, NVLink of 600 GB/s in both directions together;
/// NVIDIA DGX A100 datasheet, one ConnectX-6 of 200 Gb/s for each GPU.
template <int Nodes>
inline constexpr cluster a100{Nodes, 8, 80'000'000'000, 312e12, 300e9, 25e9, "a100"};
/// Nodes of eight B200s.
/// Source: NVIDIA DGX B200 datasheet: 1,440 GB and 18 PFLOP/s for eight GPUs, NVLink of 1.8 TB/s in both
/// directions together, one ConnectX-7 of 400 Gb/s for each GPU.
template <int Nodes>
inline constexpr cluster b200{Nodes, 8, 180'000'000'000, 2.25e15, 900e9, 50e9, "b200"};
/// Racks of 72 GB200s, all connected by NVLink. A plan uses 64 of them, as in MLPerf Training 5.0, because
/// parallel degrees divide 64.
/// Source: NVIDIA GB200 NVL72 datasheet: 13.4 TB and 180 PFLOP/s for 72 GPUs; all other numbers are those of
/// a B200.
template <int Nodes>
inline constexpr cluster gb200{Nodes, 64, 186'000'000'000, 2.5e15, 900e9, 50e9, "gb200"};
/// One machine without GPUs; its ranks are threads.
inline constexpr cluster cpu{1, 64, 0, 0};
}  // namespace clusters

}  // namespace rankc
