// SPDX-License-Identifier: Apache-2.0
// The hash of the calls of a proven program. The text of the program is compared with it when it starts
// (rankc/runtime/proven.hpp).
#pragma once
#include <rankc/codegen/program.hpp>

#include <cstdint>
#include <vector>

namespace rankc::codegen {

/// The hash of a step's calls, for ranks that run the same ops.
struct step_hash {
  int alike = 0;  // rank_program::alike
  int rank = 0;   // the rank of the world whose calls are hashed
  bool trains = false;
  std::vector<std::uint64_t> after = {};  // the hash after each call
  std::uint64_t hash = 0;                 // of all calls and of the waits at the end
};

/// Hashes the calls of each distinct rank program. First the operands of each call are compared with the
/// reads, writes and views of its op. Ranks that run the same ops share the hash of the last of them. The
/// first of them has a separate hash if it differs: its shards begin elsewhere. The hashes are sorted by
/// these ranks.
/// Errors: runtime::failure (1) naming the rank and the op whose call has other operands.
std::vector<step_hash> hash_calls(const program&);

}  // namespace rankc::codegen
