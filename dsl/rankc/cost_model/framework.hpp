// SPDX-License-Identifier: Apache-2.0
// What programs of others do otherwise than rankc's, of the same plan: for predicting steps that are
// published of them.
#pragma once
#include <string_view>

namespace rankc::cost_model {

/// Products of repeated layers, of smaller numbers than activations have; all against rankc's of 16 bits: how
/// fast they are, the joules of an operation, and the bytes that tp's gathers send. `cast_bytes` pass through
/// memory for each element of activations that is made so small.
struct small_products {
  double speed = 1, joules = 1, gathered = 1, cast_bytes = 0;
};

/// How a program does what a plan says.
/// Units: bytes of a logit or a parameter, that pass through memory beside those that do in rankc's program.
struct framework {
  std::string_view name;
  bool keeps_scores = false;     // attention is batched products, and passes over all scores, masked ones too
  bool dropouts = false;         // of scores, and of what is added to the residual
  bool separate_passes = false;  // what follows a product has a kernel of its own
  bool adds_apart = false;       // and so has adding a microbatch's gradients of weights to those of others
  bool repeats_whole_layers = false;  // full recomputation repeats what nothing reads, too
  small_products products{};
  double joules = 1;  // of kernels, against rankc's
  double loss_bytes = 0;
  double sweep_bytes = 0;       // of the optimizer
  double waits_for_tensor = 1;  // of the time of tp's collectives, the share that computation waits
  bool by_rows = false;         // they move rows beside products, where the program says so
  bool copies_to_send =
      false;  // collectives go by copies in buffers; rankc's read and write the other ranks' tensors
  bool tensor_sums_beside = false;  // backward's sums over tp go beside products
  bool sums_beside = true;          // gradients are summed beside backward; else after it
  bool sends_beside = true;         // messages between stages go beside computation; else the sender waits
  bool scatters_messages =
      false;  // ranks of tp that have the same send a part each, which those that receive gather
};

inline constexpr framework rankc_itself{.name = "rankc", .by_rows = true};

}  // namespace rankc::cost_model
