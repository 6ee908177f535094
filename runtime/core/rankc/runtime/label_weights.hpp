// SPDX-License-Identifier: Apache-2.0
// The weights of labels in a step's loss.
#pragma once
#include <string_view>

namespace rankc::runtime {

/// The input of a program with token_weights.
inline constexpr std::string_view name_of_weights = "weights";

/// The range of weights other than 0. A step's sum of such weights is finite in f32, and not 0.
inline constexpr double least_weight = 0x1p-100, largest_weight = 0x1p100;

constexpr bool is_weight(double x) { return x == 0 || (x >= least_weight && x <= largest_weight); }

}  // namespace rankc::runtime
