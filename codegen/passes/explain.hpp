// SPDX-License-Identifier: Apache-2.0
// What a pass changes, as text for a person: `emit --explain PASS`.
#pragma once
#include <rankc/codegen/lowered.hpp>

namespace rankc::codegen {

/// The passes in the order in which they run.
std::vector<std::string> pass_names();

/// What a pass is given and what it makes of that: lines that are gone are marked -, new ones +. A layer is
/// printed whole; of the ranks what the pass changes.
std::string explain(const plan_data&, dtype, target, const std::string& pass);

}  // namespace rankc::codegen
