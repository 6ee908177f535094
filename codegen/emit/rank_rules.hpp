// SPDX-License-Identifier: Apache-2.0
// The text of a program's ranks and communicators, as rules over the mesh.
#pragma once
#include <rankc/codegen/lowered.hpp>
#include <rankc/runtime/rank_tables.hpp>

#include <string>

namespace rankc::codegen {

/// The rules, and the tables that the program makes from them when it is loaded.
std::string rank_rules_text(const lowered&);

/// A rank as the sum of its coordinates, "4 pp + 2 dp + tp", and of `first` if it is not 0.
std::string rank_formula(const runtime::rank_rule&, int first = 0);

}  // namespace rankc::codegen
