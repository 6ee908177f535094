// SPDX-License-Identifier: Apache-2.0
// The text of the parameters of all pipeline coordinates: rows that layers share, and blocks of layers.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <string>

namespace rankc::codegen {

/// The tables parameters_0, parameters_1, ..., one for each pipeline coordinate that has parameters.
std::string parameter_blocks_text(const lowered&);

}  // namespace rankc::codegen
