// SPDX-License-Identifier: Apache-2.0
// Checks the tables of a program.
#include "check.hpp"

#include "../check_tables.hpp"
#include "names.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace rankc::runtime::host {

using namespace rankc::runtime;

namespace {

void check_head(const description& about) {
  check_version(about);
  if (about.type != dtype::f32 && about.type != dtype::f64)
    throw failure(1, "RC5034: program {} has the type {}; the host target computes in f32 or f64", about.name,
                  name(about.type));
  if (about.layouts.size() != static_cast<std::size_t>(about.pp) ||
      about.ranks.size() != static_cast<std::size_t>(about.world()))
    throw failure(1, "RC5035: program {} has {} layouts and {} ranks; its degrees need {} and {}", about.name,
                  about.layouts.size(), about.ranks.size(), about.pp, about.world());
}

void check_coordinates(const description& about) {
  std::vector<bool> taken(about.ranks.size());
  for (std::size_t r = 0; r < about.ranks.size(); ++r) {
    const auto [pp, dp, tp, links, cp, ep] = about.ranks[r];
    const int of_ep = about.independent_experts ? about.ep : 1;
    const bool inside = pp >= 0 && pp < about.pp && dp >= 0 && dp < about.dp && ep >= 0 && ep < of_ep &&
                        cp >= 0 && cp < about.cp && tp >= 0 && tp < about.tp;
    const auto cell =
        inside
            ? static_cast<std::size_t>((((pp * about.dp + dp) * of_ep + ep) * about.cp + cp) * about.tp + tp)
            : 0;
    if (!inside || taken[cell])
      throw failure(
          1,
          "RC5036: program {}: rank {} has the coordinates pp {}, dp {}, ep {}, cp {}, tp {}; every "
          "rank needs its own, below the plan's degrees",
          about.name, r, pp, dp, ep, cp, tp);
    taken[cell] = true;
  }
}

void check_link(const description& about, int rank, const lane_communicator& k) {
  const rank_row& row = about.ranks[static_cast<std::size_t>(rank)];
  const auto lanes = about.layouts[static_cast<std::size_t>(row.pp)].lanes;
  if (k.lane < 0 || static_cast<std::size_t>(k.lane) >= lanes.size())
    throw failure(1, "RC5037: program {}: rank {} has a communicator on lane {}; there are {} lanes",
                  about.name, rank, k.lane, lanes.size());
  const char* const lane = lanes[static_cast<std::size_t>(k.lane)].name;
  if (k.communicator < 0 || static_cast<std::size_t>(k.communicator) >= about.communicators.size())
    throw failure(1,
                  "RC5038: program {}: rank {} names communicator {} over {} on lane {}; there are {} "
                  "communicators",
                  about.name, rank, k.communicator, name(k.over), lane, about.communicators.size());
  const communicator& c = about.communicators[static_cast<std::size_t>(k.communicator)];
  if (std::find(c.ranks.begin(), c.ranks.end(), rank) == c.ranks.end())
    throw failure(
        1, "RC5039: program {}: the ranks of communicator {} over {} on lane {} do not include rank {}",
        about.name, c.name, name(k.over), lane, rank);
  if (k.over == over::peer && c.ranks.size() != 2)
    throw failure(1,
                  "RC5040: program {}: communicator {} over {} on lane {} has {} ranks; it must have two, a "
                  "sender and a receiver",
                  about.name, c.name, name(k.over), lane, c.ranks.size());
}

// If two lanes posted on one communicator, their order would differ from the other ranks'.
void check_links(const description& about, int rank) {
  const auto links = about.ranks[static_cast<std::size_t>(rank)].links;
  for (std::size_t i = 0; i < links.size(); ++i) {
    check_link(about, rank, links[i]);
    for (const lane_communicator& other : links.first(i)) {
      if (other.communicator == links[i].communicator)
        throw failure(
            1, "RC5041: program {}: rank {} has communicator {} twice; each belongs to one lane and one kind",
            about.name, rank, about.communicators[static_cast<std::size_t>(other.communicator)].name);
      if (other.lane == links[i].lane && other.over == links[i].over)
        throw failure(1, "RC5042: program {}: rank {} has two communicators over {} on lane {}", about.name,
                      rank, name(other.over), other.lane);
    }
  }
}

}  // namespace

void check(const program& p) {
  const description& about = p.about;
  check_head(about);
  check_training_step(about, p.train != nullptr);
  check_coordinates(about);
  check_first_lanes(about);
  for (int r = 0; r < about.world(); ++r) check_links(about, r);
}

}  // namespace rankc::runtime::host
