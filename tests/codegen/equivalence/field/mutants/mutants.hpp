// SPDX-License-Identifier: Apache-2.0
// Lowered programs with one fault. Most stay consistent, so that only their results are wrong: an exchanged
// operand, a scale, a sum without a term.
#pragma once
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/specification.hpp>

#include <random>
#include <string>
#include <vector>

namespace field {

/// A fault changes the value of a field, or the structure: ops, operands, values, groups or holdings are
/// exchanged, omitted or doubled.
enum class fault_form { field, structure };

struct fault {
  std::string kind, text;  // an empty kind: the draw found nothing to change
};

/// Make one fault of a form.
fault make_fault(rankc::codegen::program&, fault_form, std::mt19937&);

/// Shrink all slabs of exchanged tokens by the same number of rows.
fault shrink_slabs(rankc::codegen::program&, std::mt19937&);

/// All members skip a sum: readers of its result read the local part.
void leave_out_sum(rankc::codegen::program&, const rankc::codegen::op& of);

/// Two ranks have each other's programs, with their communicators and messages.
void exchange_places(rankc::codegen::program&, int one, int other);

/// Make one fault in the model instead.
fault make_fault(rankc::codegen::specification&, fault_form, std::mt19937&);

}  // namespace field
