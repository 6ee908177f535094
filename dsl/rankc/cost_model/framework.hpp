// SPDX-License-Identifier: Apache-2.0
// The differences between rankc's program and that of another framework for the same plan. They are needed to
// predict published steps of such frameworks.
#pragma once
#include <string_view>

namespace rankc::cost_model {

/// GEMMs of repeated layers whose operands have fewer bits than activations, relative to rankc's GEMMs of 16
/// bits: their speed, the joules of an operation, and the bytes that tp's all-gathers send. `cast_bytes` is
/// the memory traffic for each element of an activation that is cast.
struct small_products {
  double speed = 1, joules = 1, gathered = 1, cast_bytes = 0;
};

/// How a framework runs a plan.
/// Units: loss_bytes and sweep_bytes are the memory traffic of a logit and of a parameter, in addition to
/// that in rankc's program.
struct framework {
  std::string_view name;
  bool keeps_scores = false;     // attention is batched GEMMs, and kernels over all scores, masked ones too
  bool dropouts = false;         // dropout of scores and of the values added to the residual
  bool separate_passes = false;  // an op that rankc fuses with a GEMM is a separate kernel
  bool adds_apart = false;       // a separate kernel adds weight gradients of microbatches
  bool repeats_whole_layers = false;  // full recomputation also repeats ops that nothing reads
  small_products products{};
  double joules = 1;  // joules of kernels, relative to rankc's
  double loss_bytes = 0;
  double sweep_bytes = 0;       // in the optimizer
  double waits_for_tensor = 1;  // fraction of the time of tp's collectives that computation waits
  bool by_rows = false;  // tp's collectives move rows that overlap GEMMs on other rows, if the program does
  bool copies_to_send = false;  // collectives copy through buffers; rankc's access the other ranks' tensors
  bool tensor_sums_beside = false;  // reduce-scatters and all-reduces over tp in backward overlap GEMMs
  bool sums_beside = true;          // reductions of gradients overlap backward; else they run after it
  bool sends_beside = true;         // messages between stages overlap computation; else the sender waits
  bool scatters_messages =
      false;  // each tp rank sends a part of a repeated tensor; the receivers all-gather it
};

inline constexpr framework rankc_itself{.name = "rankc", .by_rows = true};

}  // namespace rankc::cost_model
