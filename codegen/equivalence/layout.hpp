// SPDX-License-Identifier: Apache-2.0
// Checks the bytes of a kernel's operands: which rows may have a stride, and which results may overwrite an
// operand or be added to a buffer.
#pragma once
#include <rankc/codegen/program.hpp>

#include "facts.hpp"
#include "refusal.hpp"

namespace rankc::codegen::algebra {

/// Errors: refusal where an op's views break the facts of its row.
void check_layout(const op&, const fact&);
/// Checks that an access is aligned to the element size and has whole elements.
void check_elements(const view&, const access&);
/// The refusal of a view that does not cover its buffer.
refusal given_in_part(const view&);
/// Errors: refusal where the `bytes` of a message or a collective differ from the bytes of its tensors.
void check_bytes(const op&, std::size_t expected);
/// The refusal of a result that is added to bytes that the op does not read.
refusal adds_unread(const view&);
/// The refusal of tensors with other bytes between them.
refusal not_contiguous();
/// The index of a member in its communicator, and the number of members.
struct seat {
  int member, members;
};
/// Checks the bytes of a member's tensors, and the number of bytes that the collective names.
void check_layout(const op& collective, const seat&);

}  // namespace rankc::codegen::algebra
