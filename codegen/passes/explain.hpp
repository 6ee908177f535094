// SPDX-License-Identifier: Apache-2.0
// The changes of a pass as text for a person: `emit --explain PASS`.
#pragma once
#include <rankc/codegen/lowered.hpp>

namespace rankc::codegen {

/// The passes in the order in which they run.
std::vector<std::string> pass_names();

/// The data before and after a pass: removed lines are marked -, added lines +. A layer is printed whole; for
/// ranks the changed sections are printed.
std::string explain(const plan_data&, dtype, target, const std::string& pass);

}  // namespace rankc::codegen
