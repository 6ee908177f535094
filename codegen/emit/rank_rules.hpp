// SPDX-License-Identifier: Apache-2.0
// The text of a program's ranks and communicators, as rules over the mesh.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <string>

namespace rankc::codegen {

/// The rules, and the tables that the program makes from them when it is loaded.
std::string rank_rules_text(const lowered&);

}  // namespace rankc::codegen
