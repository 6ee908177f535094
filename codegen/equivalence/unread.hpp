// SPDX-License-Identifier: Apache-2.0
// Fields that no check reads, of an op, a view or a holding: they have the value that lowering gives them.
#pragma once
#include <rankc/codegen/program.hpp>

#include "facts.hpp"
#include "refusal.hpp"

namespace rankc::codegen::algebra {

/// Errors: refusal where an op of a row has an attribute, a unit or a stride that the row does not take.
void check_unread(const op&, const fact&);
/// The same of an op that is not of a row: of the optimizer, of communication, of begin and of end.
void check_unread(const op&);
/// Errors: refusal where a holding has a name, a box or positions that its kind does not use.
void check_unread(const codegen::holding&);

}  // namespace rankc::codegen::algebra
