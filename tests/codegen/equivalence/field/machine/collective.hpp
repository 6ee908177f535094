// SPDX-License-Identifier: Apache-2.0
// Collectives: the members' inputs, and each member's result.
#pragma once
#include "compute.hpp"

namespace field {

/// A member, and its op.
struct member {
  rank_state* rank;
  const rankc::codegen::op* does;
};

/// Run a collective in which all members have arrived. `key` determines the content of its scratch
/// afterwards.
/// Errors: malformed if the members' ops differ, or if sizes do not fit.
void run_collective(const std::vector<member>&, std::uint64_t key);

}  // namespace field
