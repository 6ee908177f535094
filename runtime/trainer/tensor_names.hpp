// SPDX-License-Identifier: Apache-2.0
// Whether a source has exactly the tensors that a model needs.
#pragma once
#include <rankc/trainer/checkpoint_index.hpp>
#include <rankc/trainer/tensor_source.hpp>

#include <map>
#include <string>
#include <vector>

namespace rankc::runtime {

using shape_map = std::map<std::string, std::vector<std::size_t>>;

/// Hold the tensors of a source to those that are expected of it.
/// Errors: failure (1) that lists what is missing, unexpected and of another shape, 20 names of each at most.
void check_shapes(const std::string& source, const shape_map& found, const shape_map& expected);

/// Hold them to regions of a model's parameters.
void check_tensors(const tensor_source&, const std::vector<global_parameter>&, const std::vector<part>&);

}  // namespace rankc::runtime
