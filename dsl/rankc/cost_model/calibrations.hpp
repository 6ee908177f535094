// SPDX-License-Identifier: Apache-2.0
// The GPUs that rankc knows.
#pragma once
#include <rankc/cost_model/gpu_speed.hpp>

namespace rankc::cost_model {

/// Source: rankc-calibrate on one H200 of 700 W, whose rows are tests/cost_model/h200.jsonl, and rankc calibrate of these;
/// in_steps: two steps of programs there, of GPT-2 124M and of eight layers of Llama 3 8B; node.bandwidth, beside and
/// link_power: a step of these layers on two ranks of dp; messages: NCCL 2.28 between two; networks: NVIDIA DGX H200
/// datasheet, one ConnectX-7 of 400 Gb/s for each GPU.
inline constexpr gpu_speed h200{
    .name = "h200",
    .processors = 132,
    .peak = 9.89e+14,
    .products = 9.89e+14,
    .product_start = 3.136e-06,
    .tile_start = 3.644e-07,
    .narrow_tile = 0.01927,
    .stores_beside = 0.3183,
    .split_sums = 0.02885,
    .with_bias = 0.8798,
    .two_results = 0.7809,
    .forward = {{9.8e-06, 4.712e+14, 321.2, 8.81e-13}, {1.18e-05, 7.156e+14, 371.9, 9.45e-13}},
    .backward = {{1.79e-05, 4.521e+14, 814.3, 1.28e-12}, {3.28e-05, 6.225e+14, 975.4, 1.03e-12}},
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

/// Source: the same of one H100 of 80 GB and 700 W, whose rows are tests/cost_model/h100.jsonl; the rest as of an H200.
inline constexpr gpu_speed h100{
    .name = "h100",
    .processors = 132,
    .peak = 9.89e+14,
    .products = 9.89e+14,
    .product_start = 3.344e-06,
    .tile_start = 4.337e-07,
    .narrow_tile = 0.01342,
    .stores_beside = 0.2174,
    .split_sums = 0.01324,
    .with_bias = 0.8939,
    .two_results = 0.7189,
    .forward = {{1.16e-05, 4.746e+14, 289.7, 1.01e-12}, {1.24e-05, 7.283e+14, 371.9, 9.21e-13}},
    .backward = {{1.73e-05, 4.635e+14, 1011, 1.47e-12}, {2.59e-05, 6.459e+14, 1449, 1.14e-12}},
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

/// By the names that clusters call them.
inline constexpr const gpu_speed* known[]{&h200, &h100};
/// Null where none has the name.
constexpr const gpu_speed* find_speed(std::string_view name) {
  for (const gpu_speed* g : known)
    if (g->name == name) return g;
  return nullptr;
}

}  // namespace rankc::cost_model
