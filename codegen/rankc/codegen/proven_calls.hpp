// SPDX-License-Identifier: Apache-2.0
// The hash of the calls of a proven program. The text of the program is compared with it when it starts
// (rankc/runtime/proven.hpp).
#pragma once
#include <rankc/codegen/program.hpp>

#include <cstdint>
#include <vector>

namespace rankc::codegen {

/// A step of ranks that run the same ops.
struct step_hash {
  int alike = 0;  // rank_program::alike
  int rank = 0;   // of the world; the calls have its coordinates
  bool trains = false;
  std::vector<std::uint64_t> after = {};  // each call
  std::uint64_t hash = 0;                 // all calls and the waits of the end
};

/// Hash the calls of each distinct rank program, after the operands of each call have been compared with the
/// reads, writes and views of its op. Ranks that run the same ops share the hash of the last of them, and
/// that of the first where it differs: there shards begin elsewhere. The hashes are in the order of these
/// ranks.
/// Errors: runtime::failure (1) naming the rank and the op whose call has other operands.
std::vector<step_hash> hash_calls(const program&);

}  // namespace rankc::codegen
