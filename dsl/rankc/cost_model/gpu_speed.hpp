// SPDX-License-Identifier: Apache-2.0
// The speed and the power of GPUs for each kind of kernel: constants that rankc-calibrate measures or that
// the vendor publishes.
#pragma once
#include <string_view>

namespace rankc::cost_model {

/// fp8 GEMMs relative to GEMMs of 16-bit elements: their speed if power is no limit, and the joules of an
/// operation.
/// Source: cuBLASLt on one H100, which is 1.6 to 1.9 times as fast for the shapes of GPT-2 1.5B and of Llama
/// 3 8B; a step of eight layers of Llama 3 8B on it.
inline constexpr double fp8_speed = 1.7, fp8_joules = 0.6;
/// The fraction of fp8_speed that GEMMs keep if their operands have a scale for each row. The joules of an
/// operation are divided by it.
/// Source: cuBLASLt on one H200 keeps 0.91 to 0.95 in gradients and 1.04 in outputs for the shapes of Llama 3
/// 8B; a step of eight layers on an H100.
inline constexpr double fp8_rows_share = 0.92;

/// The speed of attention kernels that use no tensor cores.
/// Units: operations per second.
/// Source: documents in bf16 on one H200: GPT-2 124M, 16 x 1024 tokens, 17.8e12; 12 layers of Llama 3.2 3B's
/// shape, 2 x 4096 tokens, 16.4e12.
inline constexpr double attention_on_cuda_cores = 17e12;

/// Work that takes `start` and then a fixed time for each unit.
/// Units: seconds, units per second.
struct rate {
  double start, per_second;
  constexpr double time(double units) const { return units > 0 ? start + units / per_second : 0; }
};

/// Causal attention of one head size. Operations count only the half of the scores that is not masked.
/// Units: seconds, operations per second, tokens, joules of an operation.
struct attention_speed {
  double start, per_second;
  double half_at;  // length of sequences at which half of per_second is reached
  double joules;
  constexpr double time(double operations, double seq) const {
    return start + operations / per_second * (1 + half_at / seq);
  }
};

/// The connection between ranks.
/// Units: latency, seconds of a message; bandwidth, bytes per second of one rank in a collective that
/// overlaps computation; message_bandwidth, bytes per second of a message.
struct link {
  double latency, bandwidth, message_bandwidth;
};

/// A GPU in a step of training. The vendor publishes `peak` and `memory`. `products` is the speed inside the
/// tiles of a large GEMM of 16-bit elements, at the clock that the GPU keeps if its power allows. Work that
/// needs more power runs slower.
/// Units: operations per second, seconds, bytes per second, joules, watts.
struct gpu_speed {
  std::string_view name;
  int processors;  // multiprocessors that run tiles
  double peak;     // sum over all processors, for 16-bit elements
  double memory;   // bytes per second
  double products;
  double product_start;  // start of a GEMM kernel
  double tile_start;     // start of a tile
  // Fraction of its speed that a tile loses each time 1 / rows + 1 / columns grows by that of the widest
  // tile.
  double narrow_tile;
  // Fraction of the shorter of (memory time, compute time) that does not overlap the longer.
  double stores_beside;
  double split_sums;   // fraction of a split-k GEMM's partial sums that reaches memory
  double with_bias;    // fraction of its speed that a GEMM keeps if it adds a bias or sums a bias gradient
  double two_results;  // the same fraction, if it also writes the input of an activation
  attention_speed forward[2], backward[2];  // heads of 64 elements, and of 128
  rate passes;                              // bytes of kernels that read and write rows
  rate column_sums;                         // bytes of kernels that write rows and also sum over them
  rate sweeps;                              // bytes of the optimizer and of the norm
  double step_start;                        // start of a step, whose batch is built and copied
  double beside;  // slowdown of computation, as a fraction of the time of communication that overlaps it
  double joules_of_product;  // joules of an operation on the data of training steps
  double in_steps;           // ratio of joules_of_product to the joules for random data
  double joules_of_byte;
  double link_power;   // while sending and receiving
  double power, rest;  // the limit; the power of an idle GPU
  link node, network;
};

/// True for compute capability 9.0, for which rankc has attention kernels.
constexpr bool is_hopper(std::string_view gpu) { return gpu == "h100" || gpu == "h200"; }

}  // namespace rankc::cost_model
