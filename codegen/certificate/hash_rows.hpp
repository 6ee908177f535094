// SPDX-License-Identifier: Apache-2.0
// The rows of inputs that each rank of the world begins with.
#pragma once
#include <rankc/codegen/program.hpp>

#include <cstdint>

namespace rankc::codegen {

/// Hashes the rows of all inputs in the first microbatch, for each rank of the world that runs a program
/// (rank_program::alike), and the distance to the next microbatch. A program hashes the rows that it loads
/// when it starts.
std::uint64_t hash_of_rows(const program&, int alike);

}  // namespace rankc::codegen
