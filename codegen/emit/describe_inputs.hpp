// SPDX-License-Identifier: Apache-2.0
// How `describe` shows the inputs that a model declares.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace rankc::codegen {

/// "inputs: patches, 16 numbers of each token; labels, an index below 4 of each sequence"; empty if the model
/// declares none.
std::string inputs_text(const plan_data&);

/// A list of the declared inputs.
nlohmann::json inputs_json(const plan_data&);

}  // namespace rankc::codegen
