// SPDX-License-Identifier: Apache-2.0
// Compares the text of a program with its proof, before a rank runs it.
#pragma once
#include <rankc/runtime/call_recorder.hpp>
#include <rankc/runtime/placement.hpp>

#include "check_tables.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace rankc::runtime {

/// Run a rank's text against a recorder.
/// Errors: failure (1) naming the first call that is not the one that was proven, or the step without proof.
template <class Rank>
void check_calls(const auto& program, int index) {
  const description& about = program.about;
  const int pp = about.ranks[static_cast<std::size_t>(index)].pp;
  if (program.train != nullptr) check_proven(about, pp, true);
  check_proven(about, pp, false);
  for (const proven_step& step : about.proven) {
    if (step.pp != pp) continue;
    call_recorder by(about, index, step, Rank::is_on_host);
    Rank r;
    r.about = &about;
    r.row = &by.row();
    r.where = &about.layouts[static_cast<std::size_t>(pp)];
    r.index = index;
    r.recorder = &by;
    r.all_lanes.resize(r.where->lanes.size());
    for (std::size_t lane = 0; lane < r.all_lanes.size(); ++lane) {
      r.all_lanes[lane].of = &r;
      r.all_lanes[lane].index = static_cast<int>(lane);
    }
    (step.trains ? program.train : program.evaluate)[pp](r);
    by.finish();
  }
}

/// The same for the ranks of this process. Ranks of a pipeline coordinate whose communicators are alike make
/// the same calls, and one of them is checked.
template <class Rank>
void check_calls(const auto& program, const placement& where) {
  const description& about = program.about;
  if (where.is_one_rank()) return check_calls<Rank>(program, where.rank);
  std::vector<std::pair<int, std::uint64_t>> seen;
  for (int index = 0; index < about.world(); ++index) {
    const std::pair like{about.ranks[static_cast<std::size_t>(index)].pp,
                         call_recorder::hash_of_links(about, index)};
    if (std::find(seen.begin(), seen.end(), like) != seen.end()) continue;
    check_calls<Rank>(program, index);
    seen.push_back(like);
  }
}

}  // namespace rankc::runtime
