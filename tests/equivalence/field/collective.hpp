// SPDX-License-Identifier: Apache-2.0
// Collectives: what all members give, and what each gets of it.
#pragma once
#include "compute.hpp"

namespace field {

/// A member, and its op.
struct member {
  rank_state* rank;
  const rankc::codegen::op* does;
};

/// Run a collective that all members have come to, in their order. What it leaves in scratch is drawn of a
/// key.
/// Errors: malformed where they differ in what they do, or where sizes do not fit.
void run_collective(const std::vector<member>&, std::uint64_t key);

}  // namespace field
