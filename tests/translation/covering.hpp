// SPDX-License-Identifier: Apache-2.0
// The bytes that a call covers against those that were proven of it.
#pragma once
#include "recording.hpp"

#include <rankc/codegen/program.hpp>

#include <utility>

namespace translation {

using interval = std::pair<std::size_t, std::size_t>;  // begin, end

/// The bytes that any op of a rank touches: in order, none overlapping or adjoining another.
std::vector<interval> all_touched(const rankc::codegen::rank_program&);

/// Hold what a call covers to the accesses of an op. An area is one access, or accesses end to end; a strided
/// one is columns of one access, which is as long as its rows. Where the call covers ranges of a region, what
/// no access holds is padding, which no op of the rank may touch; no byte is in two. Returns: empty, or what
/// the text touches and what was proven: "[0, 64) where ...".
std::string cover(const std::vector<area>&, const std::vector<rankc::codegen::access>&, bool has_padding,
                  const std::vector<interval>& touched);

}  // namespace translation
