// SPDX-License-Identifier: Apache-2.0
// What the facts of a row claim, held against its kernel on a machine.
#pragma once
#include "machine.hpp"

#include <set>

namespace rankc::test::rows {

/// Results of parts of an axis are the parts of the results, or add up to them.
void check_parts(machine&, const row&, const setting&);
/// Where all of an axis is needed, or where its part begins: without it the results are others. Names the
/// axes where they are not.
std::set<std::string> needs_without_effect(machine&, const row&, const setting&);

/// A marked operand is one that a result is linear in; an operand that an equation leaves out changes
/// nothing.
void check_operands(machine&, const row&, const setting&);
/// Operands that an equation has without a mark and is linear in, and those that it has and does not use: "y
/// x".
std::set<std::string> unmarked_and_linear(machine&, const row&, const setting&);
std::set<std::string> named_and_unused(machine&, const row&, const setting&);
/// Sums, multiples and zeros are what they say.
void check_values(machine&, const row&, const setting&);

/// The rows that a row's derivative names, against differences of its own kernel. Double precision alone.
void check_derivative(machine&, const row&, const setting&);

/// A row's kernel, against its definition by other rows.
void check_definition(machine&, const row&, const setting&);
/// A fused row's definition, against the two ops that become one.
void check_fusion(machine&, const row&, const setting&);

/// In another's memory, or added to what is there, results are the same.
void check_in_place(machine&, const row&, const setting&);
void check_adding(machine&, const row&, const setting&);

/// What ranks make of their chunks of sequences is, put together or added up, what the row that it is like
/// makes of the whole.
void check_chunks(machine&, const row&);

/// What the ranks of a ring make in parts, merged or added up, is what attention makes of whole sequences.
void check_ring(machine&);

/// Of some tokens, arranged by themselves, every row with slots makes what it makes of all: the same of each
/// token, and parts of sums over them.
void check_slots(machine&);

/// Operands of eight bits are the nearest to what they are made of, and products of them those of their
/// numbers.
void check_fp8(machine&);

/// The loss and its gradient do not depend on what the logits are shifted by.
void check_shift(machine&, const setting&);

}  // namespace rankc::test::rows
