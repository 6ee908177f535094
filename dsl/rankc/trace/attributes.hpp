// SPDX-License-Identifier: Apache-2.0
// Attributes of ops that are not shapes of operands.
#pragma once
#include <rankc/contract/attention_setting.hpp>
#include <rankc/contract/rope_scaling.hpp>
#include <rankc/trace/type.hpp>

namespace rankc {

/// The attributes of an op. Its row decides which of them it uses; it has at most one number.
struct attributes {
  int rows = 0, seq = 0;   // attention and positions: sequences per rank and tokens per sequence
  int ring = 0;            // ring attention and shifts: the number of ranks in the ring
  double factor = 0;       // scale and losses: the result is multiplied by it
  double theta = 0;        // rope
  double eps = 0;          // norms
  double step = 0;         // ring attention: the number of ranks that the keys have passed
  double best = 0;         // keep_groups: a group is ranked by this many of its best experts
  double total = 0;        // normalize: the sum of each row
  double most = 0;         // arrange_limited: the most choices that an expert takes of a group of tokens
  double columns = 0;      // mask_padding: the columns before this one are kept
  double log_scale = 0;    // overflow_loss
  rope_scaling scaling{};  // rope
  attention_setting attention{};
  dim first{}, second{}, whole{};  // split and concat: the features of the two parts, and of the whole
};

/// The number of an op: its name in generated text, and the attribute that stores it.
struct number_attribute {
  std::string_view name = "number";
  double attributes::* of = &attributes::factor;
};

}  // namespace rankc
