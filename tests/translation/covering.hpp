// SPDX-License-Identifier: Apache-2.0
// Compares the bytes that a call covers with the proven bytes.
#pragma once
#include "recording.hpp"

#include <rankc/codegen/program.hpp>

#include <utility>

namespace translation {

using interval = std::pair<std::size_t, std::size_t>;  // begin, end

/// The bytes that a rank's ops touch, as ordered intervals that neither overlap nor adjoin.
std::vector<interval> all_touched(const rankc::codegen::rank_program&);

/// Compare the bytes that a call covers with the accesses of an op. An area is one access, or adjacent
/// accesses. A strided area is columns of one access, which has the length of its rows. If the call covers
/// ranges of a region, bytes outside accesses are padding, which no op of the rank may touch; no byte may be
/// covered twice. Returns: empty, or the difference: "[0, 64) where ...".
std::string cover(const std::vector<area>&, const std::vector<rankc::codegen::access>&, bool has_padding,
                  const std::vector<interval>& touched);

}  // namespace translation
