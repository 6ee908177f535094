// SPDX-License-Identifier: Apache-2.0
// How fast GPUs are at each kind of kernel, and what that takes: constants of a machine, measured by
// rankc-calibrate or stated by who sells it.
#pragma once
#include <string_view>

namespace rankc::cost_model {

/// Products of eight bits against those of 16: how fast they are where power is no limit, and the joules of
/// an operation.
/// Source: cuBLASLt's on one H100, of the shapes of GPT-2 1.5B and of Llama 3 8B, 1.6 to 1.9 times as fast; a
/// step of eight layers of the latter there.
inline constexpr double fp8_speed = 1.7, fp8_joules = 0.6;
/// Of that speed what products keep whose operands have a scale for each row; they take as much more energy.
/// Source: cuBLASLt's of Llama 3 8B's shapes on one H200 keep 0.91 to 0.95 in gradients and 1.04 in outputs;
/// a step of eight layers on an H100.
inline constexpr double fp8_rows_share = 0.92;

/// Work that takes `start`, and then so long for each unit.
/// Units: seconds, units per second.
struct rate {
  double start, per_second;
  constexpr double time(double units) const { return units > 0 ? start + units / per_second : 0; }
};

/// Causal attention of one head size. Operations are those of the half that is not masked.
/// Units: seconds, operations per second, tokens, joules of an operation.
struct attention_speed {
  double start, per_second;
  double half_at;  // the length of sequences at which half of that is reached
  double joules;
  constexpr double time(double operations, double seq) const {
    return start + operations / per_second * (1 + half_at / seq);
  }
};

/// Ranks that are connected alike. Units: seconds of a message; bytes per second of one rank, of a collective
/// beside which it computes, and of a message.
struct link {
  double latency, bandwidth, message_bandwidth;
};

/// A GPU in a step of training. `peak` and `memory` are stated by who sells it; `products` is reached within
/// the tiles of a large product of 16-bit elements at the clock that the GPU keeps where its power allows;
/// what takes more runs as slowly as the power says.
/// Units: operations per second, seconds, bytes per second, joules, watts.
struct gpu_speed {
  std::string_view name;
  int processors;  // that tiles are dealt out to
  double peak;     // operations of all processors, of 16-bit elements
  double memory;   // bytes that pass through it
  double products;
  double product_start;  // of a kernel
  double tile_start;     // of a tile
  double
      // how much of its speed a tile loses for each time that it is as narrow again as the widest
      narrow_tile;
  double
      // the share of what passes through memory that computation does not hide, or the other way around
      stores_beside;
  double split_sums;  // of what a product writes in parts, the share that reaches memory
  double with_bias;   // the share of its speed that a product keeps which adds a bias, or sums one's gradient
  double two_results;                       // or which writes what was before an activation, too
  attention_speed forward[2], backward[2];  // of heads of 64, and of 128
  rate passes;                              // bytes of kernels that read and write rows
  rate column_sums;                         // bytes of those that write rows and sum over them, too
  rate sweeps;                              // bytes of the optimizer and of the norm
  double step_start;                        // of a step: its batch is made and copied
  double beside;             // of the time of what goes over links, what computation beside it takes longer
  double joules_of_product;  // of an operation, on what steps multiply,
  double in_steps;           // which takes so much more than random numbers
  double joules_of_byte;
  double link_power;   // that sending and receiving take
  double power, rest;  // that it may take, and that it takes where nothing runs
  link node, network;
};

}  // namespace rankc::cost_model
