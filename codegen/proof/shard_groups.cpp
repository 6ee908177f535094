// SPDX-License-Identifier: Apache-2.0
#include "shard_groups.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace rankc::codegen::proof {

namespace {

/// The communicator of another rank that stands where `group` stands in sum `g` of this one: the ranks have
/// the same sums.
int group_like(const program& p, const sum& mine, int group, std::size_t g, int rank) {
  std::size_t at = 0;
  while (mine.over[at].communicator != group) ++at;
  const auto& theirs = p.ranks[rank].sums;
  return g < theirs.size() && at < theirs[g].over.size() ? theirs[g].over[at].communicator : group;
}

/// The ranks whose parts sums over some groups have, one after the other; none where they have one's twice.
std::set<int> reached_by(const program& p, int rank, std::size_t g, const std::vector<int>& groups) {
  const sum& mine = p.ranks[rank].sums[g];
  std::set<int> reached{rank};
  for (int group : groups) {
    std::set<int> more;
    for (int r : reached)
      for (int member : p.communicators[group_like(p, mine, group, g, r)].ranks)
        if (!more.insert(member).second) return {};
    reached = std::move(more);
  }
  return reached;
}

}  // namespace

shard_groups groups_of_shards(const program& p, int rank, std::size_t g) {
  std::vector<int> kept;
  for (const auto& [communicator, as] : p.ranks[rank].sums[g].over) {
    if (as != placement::sharded && as != placement::dealt) continue;
    const std::vector<int>& members = p.communicators[communicator].ranks;
    const std::set<int> reached = reached_by(p, rank, g, kept);
    if (!std::all_of(members.begin(), members.end(), [&](int r) { return reached.contains(r); }))
      kept.push_back(communicator);
  }
  return {{kept.begin(), kept.end()}, reached_by(p, rank, g, kept).empty()};
}

}  // namespace rankc::codegen::proof
