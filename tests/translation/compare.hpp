// SPDX-License-Identifier: Apache-2.0
// Translation validation: compares a generated text's calls on a rank with the program that was proven for
// its plan.
#pragma once
#include "recording.hpp"

#include <rankc/codegen/program.hpp>

namespace translation {

/// Compare the text's calls on one rank with the proven program of that rank: op by op in the order of issue,
/// its function, operands, bytes, stream, communication and waits. `rank` is an index into the program's
/// ranks.
/// Returns: empty, or a sentence on the first difference: rank, op, what the text does, what was proven.
std::string compare(const recording&, const rankc::codegen::program&, int rank);

/// Compare the tables of a text with the proven program of one rank: plan, arena, and the bytes that the
/// runtime fills before a step and hands out after it.
std::string compare_tables(const rankc::runtime::description&, const rankc::codegen::program&, int rank,
                           bool trains);

/// Compare both on every rank of the program.
std::string compare(const text&, const rankc::codegen::program&, bool trains);

}  // namespace translation
