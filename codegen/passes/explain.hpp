// SPDX-License-Identifier: Apache-2.0
// What each pass made, as text for a person: `emit --explain PASS`.
#pragma once
#include <rankc/codegen/lowered.hpp>

namespace rankc::codegen {

std::vector<std::string> pass_names();
std::string explain(const lowered&, const std::string& pass);

}  // namespace rankc::codegen
