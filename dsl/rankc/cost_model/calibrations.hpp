// SPDX-License-Identifier: Apache-2.0
// The GPUs that rankc knows.
#pragma once
#include <rankc/cost_model/gpu_speed.hpp>

namespace rankc::cost_model {

/// Source: rankc-calibrate on one H200 (700 W), whose rows are tests/cost_model/h200.jsonl; NCCL 2.28 on two and on eight of
/// them; networks: NVIDIA DGX H200 datasheet, one ConnectX-7 of 400 Gb/s for each GPU.
inline constexpr gpu_speed h200{
    .name = "h200",
    .processors = 132,
    .products = 1003e12,
    .product_start = 3.1e-6,
    .tile_start = 0.39e-6,
    .narrow_tile = 0.02,
    .stores_beside = 0.36,
    .split_sums = 0.025,
    .two_results = 0.8,
    .forward = {{9e-6, 492e12, 404, 0.87e-12}, {9e-6, 729e12, 386, 0.95e-12}},
    .backward = {{25e-6, 482e12, 931, 1.26e-12}, {25e-6, 638e12, 990, 1.02e-12}},
    .passes = {2.1e-6, 4.3e12},
    .column_sums = {8e-6, 3.6e12},
    .sweeps = {4e-6, 4.25e12},
    .step_start = 0.4e-3,
    .beside = 0.33,
    .joules_of_product = 0.83e-12,
    .joules_of_byte = 98e-12,
    .link_power = 190,
    .power = 697,
    .rest = 122,
    .node = {20e-6, 162e9, 273e9},
    .network = {30e-6, 42e9, 42e9},
};

}  // namespace rankc::cost_model
