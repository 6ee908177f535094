// SPDX-License-Identifier: Apache-2.0
#include "rank_head.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <rankc/codegen/text_template.hpp>
#include <vector>

#include "../passes/communicator_groups.hpp"
#include "rank_rules.hpp"

namespace rankc::codegen {

namespace {

using runtime::coordinate;

/// "rank = 4 + 2 dp + tp": the ranks of one pipeline coordinate, which begin with `first`.
std::string rank_text(runtime::rank_rule mesh, int first) {
  mesh.pp = {};
  return "rank = " + rank_formula(mesh, first);
}

std::string stage_text(const stage_plan& s) {
  const std::string& first = s.layers.front().name;
  return s.layers.size() == 1 ? fmt::format("Stage {}: {}.", s.stage, first)
                              : fmt::format("Stage {}: {} to {}.", s.stage, first, s.layers.back().name);
}

/// "4 5", or "0 8 16 ... 504" where a group has many ranks.
std::string members_text(const std::vector<int>& ranks) {
  constexpr std::size_t most = 8, shown = 3;
  if (ranks.size() <= most) return fmt::format("{}", fmt::join(ranks, " "));
  return fmt::format("{} ... {}", fmt::join(ranks.begin(), ranks.begin() + shown, " "), ranks.back());
}

/// The group of a rank.
std::vector<int> group_of(int rank, const communicator_group& g) {
  int first = rank;
  for (const coordinate& c : g.across) first -= c.of(rank) * c.stride;
  return runtime::detail::group_from(first, g.across);
}

/// "pipeline rank 0 is rank - 4, pipeline rank 2 is rank + 4"
std::string neighbours_text(const lowered& l, const pipeline_rank& r, int stride) {
  std::vector<int> peers;
  for (const lane& each : r.lanes)
    if (each.peer >= 0 && std::ranges::find(peers, each.peer) == peers.end()) peers.push_back(each.peer);
  std::ranges::sort(peers);
  std::vector<std::string> words;
  for (const int peer : peers)
    words.push_back(fmt::format("pipeline rank {} is rank {} {}", peer, peer < r.index ? "-" : "+",
                                std::abs(peer - r.index) * stride));
  return words.empty() || l.ranks.size() == 1 ? "" : fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

std::string rank_head(const lowered& l, const pipeline_rank& r) {
  const runtime::rank_rule mesh = coordinates_of_ranks(l.plan->dims);
  const int first = r.index * mesh.pp.stride, ranks = mesh.world() / mesh.pp.size;
  const std::string memory = readable_bytes(r.arena.bytes);
  std::string out = ranks == 1 ? fmt::format("// Rank {} runs this text. Memory: {}.", first, memory)
                               : fmt::format("// Ranks {} to {} run this text: {}. Memory of each: {}.",
                                             first, first + ranks - 1, rank_text(mesh, first), memory);
  for (const stage_plan& s : r.stages) out += "\n// " + stage_text(s);
  if (const std::string peers = neighbours_text(l, r, mesh.pp.stride); !peers.empty())
    out += fmt::format("\n// Neighbours: {}.", peers);
  std::string groups;
  for (const communicator_group& g : list_communicator_groups(l)) {
    const std::vector<int> members = group_of(first, g);
    groups += fmt::format("\n//   {:<8} {} ranks: {}",
                          runtime::over_names[static_cast<int>(g.communicators.front().over)], members.size(),
                          members_text(members));
  }
  if (!groups.empty()) out += fmt::format("\n// Groups of rank {}:{}", first, groups);
  return out;
}

}  // namespace rankc::codegen
