// SPDX-License-Identifier: Apache-2.0
// Where a kernel's operands may lie: which rows lie apart, which results over which operands, which are added
// to.
#pragma once
#include <rankc/codegen/program.hpp>

#include "facts.hpp"

namespace rankc::codegen::algebra {

/// Errors: refusal where an op's views are not as its row's facts allow.
void check_layout(const op&, const fact&);
/// The same of a collective, and of the bytes that it is told of.
void check_layout(const op& collective);
/// Whether a port takes a table of rotary positions as it was filled: without a stride.
inline bool is_rotary(const port& p) {
  return p.axes.size() == 2 && p.axes[0].of == 's' && p.axes[1].of == 'd';
}

}  // namespace rankc::codegen::algebra
