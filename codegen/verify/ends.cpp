// SPDX-License-Identifier: Apache-2.0
#include "ends.hpp"

#include <algorithm>

namespace rankc::codegen::verifying {

end_sets::end_sets(const step& d, const schedule& s, bits none)
    : d_(d), schedule_(s), none_(std::move(none)) {
  for (const listed_program& r : d.programs) {
    auto& of = pair_of_.emplace_back(r.ops.size());
    for (int i = 0; i < static_cast<int>(of.size()); ++i) {
      const int by = r.ops[i].by_rows;
      if (by == 0) continue;
      const bool gathers = r.ops[i].does == collective_kind::all_gather;
      of[i] = {i, gathers};
      of[gathers ? i + by : i - by] = {i, !gathers};
    }
  }
}

/// The ops that have surely ended when the pairs of all members start. Each member calls it once.
bits end_sets::at_starts_of_pairs(std::span<const id> members) {
  bits all = none_;
  for (const id& m : members) {
    const auto known = at_start_.find(m);
    unite(all, known->second.set);
    if (++known->second.uses == members.size()) at_start_.erase(known);
  }
  return all;
}

/// The ops that have surely ended when each member of a shift ends: those before its start and before its
/// giver's start. If some members of the ring are not listed, a giver may be one of them, so givers then add
/// nothing.
std::vector<bits> end_sets::after_givers(std::span<const id> members, const std::vector<bits>& starts) const {
  const listed_op& first = at(d_, members[0]);
  const communicator& ring = d_.communicators[d_.ranks[members[0].rank].communicators[first.communicator]];
  const std::size_t count = ring.ranks.size(), back = first.does == collective_kind::shift ? count - 1 : 1;
  std::vector<bits> ends = starts;
  if (ring.size != static_cast<int>(count)) return ends;
  const auto member_at = [&](std::size_t place) {
    const auto is_it = [&](const id& m) { return m.rank == ring.ranks[place]; };
    return static_cast<std::size_t>(std::find_if(members.begin(), members.end(), is_it) - members.begin());
  };
  for (std::size_t place = 0; place < count; ++place)
    unite(ends[member_at(place)], starts[member_at((place + back) % count)]);
  return ends;
}

std::vector<bits> end_sets::at_ends(std::span<const id> members, std::vector<bits> starts) {
  for (std::size_t n = 0; n < members.size(); ++n) {
    const id m = members[n];
    const row_pair& of = pair_of_[d_.ranks[m.rank].program][m.index];
    if (of.collective < 0) continue;
    const id collective{m.rank, of.collective};
    if (of.is_first) at_start_[collective] = {starts[n], 0};
    else unite(starts[n], at_starts_of_pairs(schedule_.together(collective)));
  }
  const listed_op& first = at(d_, members[0]);
  if (first.by_rows > 0) return starts;
  if (is_shift(first.does)) return after_givers(members, starts);
  bits all = none_;
  for (const bits& set : starts) unite(all, set);
  for (std::size_t n = 0; n < members.size(); ++n)
    if (at(d_, members[n]).kind != op_kind::send)
      starts[n] = all;  // a buffered send may end before its receive starts
  return starts;
}

}  // namespace rankc::codegen::verifying
