// SPDX-License-Identifier: Apache-2.0
// Where a kernel's operands may lie: which rows lie apart, which results over which operands, which are added
// to.
#pragma once
#include <rankc/codegen/program.hpp>

#include "facts.hpp"
#include "refusal.hpp"

namespace rankc::codegen::algebra {

/// Errors: refusal where an op's views are not as its row's facts allow.
void check_layout(const op&, const fact&);
/// Whole elements of a type, from a place where such may lie.
void check_elements(const view&, const access&);
/// A refusal of a view that is not all of its buffer.
refusal given_in_part(const view&);
/// Errors: refusal where a message or a collective is told of other bytes than its tensors have.
void check_bytes(const op&, std::size_t expected);
/// A refusal of a result that is added to bytes that the op does not read.
refusal adds_unread(const view&);
/// A refusal of tensors between which other bytes lie.
refusal not_contiguous();
/// Which member of a communicator of how many.
struct seat {
  int member, members;
};
/// Where a member's tensors may lie, and the bytes that it is told of.
void check_layout(const op& collective, const seat&);

}  // namespace rankc::codegen::algebra
