// SPDX-License-Identifier: Apache-2.0
#include "lanes.hpp"

#include <fmt/format.h>
#include <rankc/memory/opened.hpp>

#include <algorithm>
#include <stdexcept>

namespace rankc::codegen {

namespace {

/// "next" or "prev" for a neighbour in the ring of pipeline ranks, else the number. With two ranks, rank 0
/// has "next" and rank 1 has "prev".
std::string name_of(int peer, int rank, int ranks) {
  const auto follows = [&](int a, int b) { return b == a + 1 || (ranks > 2 && b == 0 && a == ranks - 1); };
  if (follows(rank, peer)) return "next";
  return follows(peer, rank) ? "prev" : std::to_string(peer);
}

}  // namespace

std::vector<lane> lanes_of(const plan_data& plan, int rank) {
  const action_table& t = plan.actions;
  std::vector<lane> lanes{{"compute", true}, {"reduce"}};
  if (overlaps(t, rank)) lanes.push_back({"overlap", true});
  for (const bool sends : {true, false})
    for (const int peer : detail::find_neighbours(t, rank, sends))
      lanes.push_back({(sends ? "to_" : "from_") + name_of(peer, rank, t.ranks()), false, peer, sends});
  if (ring_ranks(plan.dims) > 1) lanes.push_back({"ring"});
  if (shards_weights(plan.dims)) lanes.push_back({"gather"});
  return lanes;
}

int gather_lane(const std::vector<lane>& lanes) { return static_cast<int>(lanes.size()) - 1; }

int ring_lane(const std::vector<lane>& lanes) {
  return static_cast<int>(
      std::find_if(lanes.begin(), lanes.end(), [](const lane& l) { return l.name == "ring"; }) -
      lanes.begin());
}
int lane_of(const std::vector<lane>& lanes, const rankc::lowering::node& n, int on) {
  return n.is_beside() && on == compute_lane ? ring_lane(lanes) : on;
}

int find_lane(const std::vector<lane>& lanes, int peer, bool sends) {
  for (std::size_t i = 0; i < lanes.size(); ++i)
    if (lanes[i].peer == peer && lanes[i].sends == sends) return static_cast<int>(i);
  throw std::logic_error(
      fmt::format("there are no messages {} pipeline rank {}", sends ? "to" : "from", peer));
}

int find_link(const pipeline_rank& r, int lane, runtime::over o) {
  for (std::size_t i = 0; i < r.links.size(); ++i)
    if (r.links[i].lane == lane && r.links[i].over == o) return static_cast<int>(i);
  throw std::logic_error(fmt::format("lane {} of pipeline rank {} has no communicator over {}",
                                     r.lanes[static_cast<std::size_t>(lane)].name, r.index,
                                     runtime::over_names[static_cast<int>(o)]));
}

}  // namespace rankc::codegen
