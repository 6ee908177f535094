// SPDX-License-Identifier: Apache-2.0
// The weight of labels in JSON.
#pragma once
#include <rankc/runtime/label_weights.hpp>

#include "json_place.hpp"

namespace rankc::runtime {

/// The weight at a place, rounded to f32.
/// Errors: failure (1) that names file, path and value, for what is no weight.
inline float read_weight(const json_place& place) {
  const double weight = place.as<double>();
  if (is_weight(weight)) return static_cast<float>(weight);
  place.refuse(fmt::format("a weight, which is 0, or from {} to {}", least_weight, largest_weight));
}

}  // namespace rankc::runtime
