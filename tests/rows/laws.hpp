// SPDX-License-Identifier: Apache-2.0
// Checks the claims in a row's facts against its kernel on a machine.
#pragma once
#include "machine.hpp"

#include <set>

namespace rankc::test::rows {

/// Results on parts of an axis are parts of the results, or sum to them.
void check_parts(machine&, const row&, const setting&);
/// Facts that require a whole axis, or the offset of a part, are necessary: results change without them.
/// Returns the axes for which results do not change.
std::set<std::string> needs_without_effect(machine&, const row&, const setting&);

/// Results are linear in marked operands, and do not depend on operands that their equation omits.
void check_operands(machine&, const row&, const setting&);
/// Operands that are not marked but are linear; below, operands that an equation names but does not use: "y
/// x".
std::set<std::string> unmarked_and_linear(machine&, const row&, const setting&);
std::set<std::string> named_and_unused(machine&, const row&, const setting&);
/// Sums, multiples and zeros equal what their equation says.
void check_values(machine&, const row&, const setting&);

/// The derivative rows of a row equal finite differences of its kernel; f64 only.
void check_derivative(machine&, const row&, const setting&);

/// A row's kernel equals its definition by other rows.
void check_definition(machine&, const row&, const setting&);
/// A fused row's definition equals the two ops that it replaces.
void check_fusion(machine&, const row&, const setting&);

/// Results are the same in another operand's memory, or when added to existing values.
void check_in_place(machine&, const row&, const setting&);
void check_adding(machine&, const row&, const setting&);

/// The ranks' results on their chunks of sequences, concatenated or summed, equal the results of the
/// corresponding row on whole sequences.
void check_chunks(machine&, const row&);

/// The partial results in a ring, merged or summed, equal attention over whole sequences.
void check_ring(machine&);

/// Rows with slots give the same results when only some tokens are arranged: the same for each token, and
/// partial sums over tokens.
void check_slots(machine&);

/// Casts to fp8 round to the nearest number, and GEMMs on fp8 operands equal those on the rounded numbers.
void check_fp8(machine&);

/// The loss and its gradient do not depend on the shift of the logits.
void check_shift(machine&, const setting&);

}  // namespace rankc::test::rows
