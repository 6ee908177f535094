// SPDX-License-Identifier: Apache-2.0
// The speeds of the GPUs that rankc knows.
#pragma once
#include <rankc/cost_model/gpu_speed.hpp>

namespace rankc::cost_model {

/// One H200 of 700 W.
/// Source: rankc-calibrate on it, whose rows are tests/cost_model/h200.jsonl, and `rankc calibrate` of these
/// rows. in_steps: two training steps on it, of GPT-2 124M and of eight layers of Llama 3 8B. node.bandwidth,
/// beside and link_power: a step of these layers on two ranks of dp. Messages: NCCL 2.28 between two GPUs.
/// Networks: NVIDIA DGX H200 datasheet, one ConnectX-7 of 400 Gb/s for each GPU.
inline constexpr gpu_speed h200{
    .name = "h200",
    .processors = 132,
    .peak = 9.89e+14,
    .memory = 4.8e+12,
    .products = 9.89e+14,
    .product_start = 3.136e-06,
    .tile_start = 3.644e-07,
    .narrow_tile = 0.01927,
    .stores_beside = 0.3183,
    .split_sums = 0.02885,
    .with_bias = 0.8798,
    .two_results = 0.7809,
    .forward = {{1.05e-05, 5.383e+14, 313.5, 1.25e-12}, {1.18e-05, 7.156e+14, 371.9, 9.45e-13}},
    .backward = {{1.59e-05, 5.162e+14, 542.4, 1.65e-12}, {3.28e-05, 6.225e+14, 975.4, 1.03e-12}},
    .passes = {2.69e-06, 4.288e+12},
    .column_sums = {7.72e-06, 3.051e+12},
    .sweeps = {4e-06, 4.536e+12},
    .step_start = 0.0004,
    .beside = 0.33,
    .joules_of_product = 8.352e-13,
    .in_steps = 1.07,
    .joules_of_byte = 1.032e-10,
    .link_power = 190,
    .power = 697,
    .rest = 122.3,
    .node = {2e-05, 1.62e+11, 2.73e+11},
    .network = {3e-05, 4.2e+10, 4.2e+10},
};

/// One H100 of 80 GB and 700 W.
/// Source: rankc-calibrate on it, whose rows are tests/cost_model/h100.jsonl; the rest is an H200's.
inline constexpr gpu_speed h100{
    .name = "h100",
    .processors = 132,
    .peak = 9.89e+14,
    .memory = 3.35e+12,
    .products = 9.89e+14,
    .product_start = 3.344e-06,
    .tile_start = 4.337e-07,
    .narrow_tile = 0.01342,
    .stores_beside = 0.2174,
    .split_sums = 0.01324,
    .with_bias = 0.8939,
    .two_results = 0.7189,
    .forward = {{1.17e-05, 5.6e+14, 353.5, 1.13e-12}, {1.24e-05, 7.283e+14, 371.9, 9.21e-13}},
    .backward = {{1.64e-05, 5.313e+14, 667.1, 1.64e-12}, {2.59e-05, 6.459e+14, 1449, 1.14e-12}},
    .passes = {2.64e-06, 3.029e+12},
    .column_sums = {7.77e-06, 2.577e+12},
    .sweeps = {4e-06, 3.104e+12},
    .step_start = 0.0004,
    .beside = 0.33,
    .joules_of_product = 8.02e-13,
    .in_steps = 1.07,
    .joules_of_byte = 1.105e-10,
    .link_power = 190,
    .power = 697,
    .rest = 123.5,
    .node = {2e-05, 1.62e+11, 2.73e+11},
    .network = {3e-05, 4.2e+10, 4.2e+10},
};

/// A GPU whose energy was not measured. Its speeds already contain the effect of its power limit.
constexpr gpu_speed without_energy(gpu_speed g) {
  for (attention_speed* s : {g.forward, g.backward}) s[0].joules = s[1].joules = 0;
  g.joules_of_product = g.joules_of_byte = g.link_power = g.rest = 0;
  g.in_steps = 1;
  return g;
}

/// One A100 of 80 GB. products, stores_beside, passes, node.bandwidth and network.bandwidth are fitted to
/// every fourth step of Korthikanti et al. 2022, table 5, of Narayanan et al. 2021, table 1, and of vTrain on
/// many nodes (tests/cost_model/published.jsonl).
/// Source: processors, peak, memory, power: NVIDIA A100 datasheet. sweeps: nine tenths of the memory's speed.
/// Attention: the speeds of cuDNN's kernels on an H100, scaled by the peaks. For heads of 64 elements these
/// are 4.746e14 and 4.635e14 on the H100, whose constants above are those of rankc's kernels for Hopper. The
/// rest is an H100's.
inline constexpr gpu_speed a100 = [] {
  gpu_speed g = h100;
  g.name = "a100";
  g.processors = 108;
  g.peak = 3.12e+14;
  g.memory = 2.039e+12;
  g.power = 400;
  g.products = 2.616e+14;
  g.stores_beside = 0.3412;
  g.forward[0].per_second = 1.497e+14;
  g.forward[1].per_second = 2.298e+14;
  g.backward[0].per_second = 1.462e+14;
  g.backward[1].per_second = 2.038e+14;
  g.passes.per_second = g.column_sums.per_second = 1.248e+12;
  g.sweeps.per_second = 1.83e+12;
  g.node = {2e-05, 2e+11, 2e+11};
  g.network = {3e-05, 2.366e+10, 2.366e+10};
  return without_energy(g);
}();

/// One B200: an H200 except for the constants below. products is fitted to every fourth step of Megatron-LM
/// that SimuMax published. Attention is an H200's times a factor, which is fitted to these steps and to those
/// of a GB200.
/// Source: processors: NVIDIA Blackwell architecture brief. The rest: NVIDIA DGX B200 datasheet. passes are
/// scaled from an H200's by the memory's 8 TB/s, and links by NVLink's 1.8 TB/s.
inline constexpr gpu_speed b200 = [] {
  gpu_speed g = h200;
  g.name = "b200";
  g.processors = 148;
  g.peak = 2.25e+15;
  g.memory = 8e+12;
  g.power = 1000;
  g.products = 9.95e+14;
  g.forward[0].per_second = 6.719e+14;
  g.forward[1].per_second = 1.02e+15;
  g.backward[0].per_second = 6.447e+14;
  g.backward[1].per_second = 8.877e+14;
  g.passes.per_second = 7.147e+12;
  g.column_sums.per_second = 5.085e+12;
  g.sweeps.per_second = 7.56e+12;
  g.node = {2e-05, 3.24e+11, 5.46e+11};
  return without_energy(g);
}();

/// One GPU of a GB200 NVL72: a B200 except for the constants below. products is fitted to every fourth step
/// of NeMo in bf16 in NVIDIA's dgxc-benchmarking and in MLPerf Training 5.0.
/// Source: NVIDIA GB200 NVL72 datasheet.
inline constexpr gpu_speed gb200 = [] {
  gpu_speed g = b200;
  g.name = "gb200";
  g.processors = 152;
  g.peak = 2.5e+15;
  g.power = 1200;
  g.products = 1.348e+15;
  return g;
}();

/// The GPUs, with the names that clusters use.
inline constexpr const gpu_speed* known[]{&h200, &h100, &a100, &b200, &gb200};
/// The GPUs whose kernels were timed.
inline constexpr const gpu_speed* timed[]{&h200, &h100};
/// Null if no GPU has the name.
constexpr const gpu_speed* find_speed(std::string_view name) {
  for (const gpu_speed* g : known)
    if (g->name == name) return g;
  return nullptr;
}

}  // namespace rankc::cost_model
