// SPDX-License-Identifier: Apache-2.0
// What some ops need beyond the shapes of their operands.
#pragma once
#include <rankc/contract/rope_scaling.hpp>
#include <rankc/trace/type.hpp>

namespace rankc {

/// The attributes of an op. Each op has those of its row, and at most one number.
struct attributes {
  int rows = 0, seq = 0;           // attention and positions: sequences per rank and their length
  int ring = 0;                    // ring attention and shifts: the ranks of the ring
  double factor = 0;               // scale, and losses: what the result is multiplied by
  double theta = 0;                // rope
  double eps = 0;                  // norms
  double step = 0;                 // ring attention: how many ranks the keys have come
  double best = 0;                 // groups of experts: the experts that a group is scored by
  double total = 0;                // normalize: the sum of a row
  double most = 0;                 // arrange_limited: the picks that an expert takes of a group of tokens
  double log_scale = 0;            // overflow_loss
  rope_scaling scaling{};          // rope
  dim first{}, second{}, whole{};  // split and concat: the features of the two, and of both
};

/// The number of an op: its name in generated text, and the attribute that holds it.
struct number_attribute {
  std::string_view name = "number";
  double attributes::* of = &attributes::factor;
};

}  // namespace rankc
