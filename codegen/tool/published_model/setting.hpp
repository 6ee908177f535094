// SPDX-License-Identifier: Apache-2.0
// The inputs of the cost model of transformer-perf-estimates: a model, a GPU system, and whether the known
// defects of the cost model are reproduced or corrected.
//
// Source: ShashankSubramanian/transformer-perf-estimates at 54278b0 (arXiv 2410.00273). Units are those of
// the source: TFLOP, GB (1e9 bytes), seconds. All numbers are computed with + - * / and comparisons. So a
// constant expression and a run give the same bits, if the compiler fuses no multiplication with an addition
// (-ffp-contract=off if the target has FMA).
#pragma once

#include <array>
#include <string_view>

namespace rankc::published_model {

/// A GPT-2 block, repeated `depth` times, without embedding and head.
struct transformer {
  int l = 0, e = 0, h = 0, depth = 0;  // sequence length, embedding, heads, layers
  int f = 4 * e;                       // hidden
};

inline constexpr transformer gpt3{2048, 12288, 96, 96}, gpt3_1T{2048, 25600, 160, 128},
    vit_era5{64800, 12288, 64, 48};

/// GPUs in NVLink domains, and the rates that a GPU reaches.
/// Units: TFLOP/s, GB/s, GB, seconds; bandwidths of links are one way and per GPU.
struct gpu_system {
  std::string_view name = {};
  double matrix_flops = 0, vector_flops = 0, hbm_bandwidth = 0, hbm_capacity = 0;
  double nvlink_bandwidth = 0, nvlink_efficiency = 0, nvlink_latency = 0;
  double ib_bandwidth = 0, ib_efficiency = 0, ib_latency = 0;
  int nvlink_size = 1;    // GPUs of a domain
  double nic_factor = 1;  // network cards per GPU

  constexpr gpu_system with_domain(int gpus) const {
    gpu_system s = *this;
    s.nvlink_size = gpus;
    return s;
  }
};

/// Source: systems/config-*.json of transformer-perf-estimates.
inline constexpr std::array<gpu_system, 4> gpu_systems{{
    {"A100", 312, 78, 1555, 80, 300, 0.7, 2.5e-6, 25, 0.7, 5e-6, 4},
    {"H200", 989.4, 133.8, 4800, 141, 450, 0.7, 2.5e-6, 50, 0.7, 5e-6, 64},
    {"B200", 2500, 339, 8000, 192, 900, 0.7, 2.5e-6, 100, 0.7, 5e-6, 4},
    {"B200-next", 3750, 508.5, 16000, 384, 3600, 0.8, 5e-6, 200, 0.8, 1e-5, 64},
}};
inline constexpr const gpu_system &a100 = gpu_systems[0], &h200 = gpu_systems[1], &b200 = gpu_systems[2],
                                  &b200_next = gpu_systems[3];

/// Switches between the Python's numbers and corrected ones. Each member corrects one defect. `faithful`
/// corrects none of them, `corrected` all. Modelling choices (no overlap of tensor parallelism, attention
/// that is not causal, one efficiency for all shapes, ...) are the same in both. Two more defects have no
/// switch: ties in the order of a set (D10), changed arguments (D11).
struct corrections {
  bool norm_width = false;   // D1: a 2D layer norm is e / tp1 wide, not l / tp1
  bool slow_hops = false;    // D2: pipeline hops between domains take time
  bool slowest_hop = false;  // D2: the slowest hop paces the pipeline; the Python averages the hops
  // D3: an all-reduce goes around the ring twice, within a domain too. Both rounds have latencies.
  bool all_reduce = false;
  bool summa_pipeline = false;  // D4: all panels of SUMMA but the first overlap a GEMM
  bool summa_panels = false;    // D5: panels that are sent or received pass through memory
  bool whole_shards = false;    // D6: the sequence divides into equal shards
  // D7: FLOPs are those that are done, not those that tensor cores could do in that time.
  bool vector_work = false;
  bool biases = false;  // D8: a bias is sharded like the tensor that it is added to, which is written too
  bool partial_domains = false;   // D9: a placement may leave GPUs of a domain unused
  bool recomputed_parts = false;  // D12: the parts of the time include recomputation, as the time does
};
inline constexpr corrections faithful{};
inline constexpr corrections corrected{true, true, true, true, true, true, true, true, true, true, true};

struct setting {
  transformer model;
  gpu_system gpu;
  corrections fix = faithful;
};

}  // namespace rankc::published_model
