// SPDX-License-Identifier: Apache-2.0
// Check that a source has exactly the tensors that a model needs.
#pragma once
#include <rankc/trainer/checkpoint_index.hpp>
#include <rankc/trainer/tensor_source.hpp>

#include <map>
#include <string>
#include <vector>

namespace rankc::runtime {

using shape_map = std::map<std::string, std::vector<std::size_t>>;

/// Compares the tensors of a source with the expected ones.
/// Errors: failure (1) that lists missing tensors, unexpected tensors and tensors of another shape, at most
/// 20 names of each.
void check_shapes(const std::string& source, const shape_map& found, const shape_map& expected);

/// Compares a source with regions of a model's parameters.
void check_tensors(const tensor_source&, const std::vector<global_parameter>&,
                   const std::vector<saved_region>&);

}  // namespace rankc::runtime
