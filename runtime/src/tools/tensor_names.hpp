// SPDX-License-Identifier: Apache-2.0
// Whether a source has exactly the tensors that a model needs.
#pragma once
#include <rankc/runtime/tools/checkpoint_index.hpp>
#include <rankc/runtime/tools/tensor_source.hpp>

#include <vector>

namespace rankc::runtime {

/// Errors: failure (1) that lists what is missing, unexpected and of another shape, 20 names of each at most.
void check_tensors(const tensor_source&, const std::vector<global_parameter>&, const std::vector<part>&);

}  // namespace rankc::runtime
