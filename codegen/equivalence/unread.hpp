// SPDX-License-Identifier: Apache-2.0
// Checks the fields of an op, a view or a holding that no other check reads: they must have the value that
// lowering gives them.
#pragma once
#include <rankc/codegen/program.hpp>

#include "facts.hpp"
#include "refusal.hpp"

namespace rankc::codegen::algebra {

/// Errors: refusal where an op of a row has an attribute, a unit or a stride that the row does not take.
void check_unread(const op&, const fact&);
/// Errors: refusal where an op without a row (optimizer, communication, begin, end) has one of them.
void check_unread(const op&);
/// Errors: refusal where a holding has a name, a box or positions that its kind does not use.
void check_unread(const codegen::holding&);

}  // namespace rankc::codegen::algebra
