// SPDX-License-Identifier: Apache-2.0
// Checks the tables of a program.
#include "check.hpp"

#include "names.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace rankc::runtime::host {

using namespace rankc::runtime;

namespace {

[[noreturn]] void refuse(const description& about, const std::string& text) {
  throw failure::reported(1, std::string("program ") + about.name + ": " + text);
}

void check_head(const description& about) {
  if (about.interface_version != interface_version)
    refuse(about, "it was generated for interface version " + std::to_string(about.interface_version) +
                      " and this runtime has version " + std::to_string(interface_version) +
                      "; generate it again");
  if (about.type != dtype::f32 && about.type != dtype::f64)
    refuse(about,
           std::string("its type is ") + name(about.type) + "; the host target computes in f32 or f64");
  if (about.layouts.size() != static_cast<std::size_t>(about.pp) ||
      about.ranks.size() != static_cast<std::size_t>(about.world()))
    refuse(about, "it has " + std::to_string(about.layouts.size()) + " layouts and " +
                      std::to_string(about.ranks.size()) + " ranks; its degrees ask for pp = " +
                      std::to_string(about.pp) + " and pp * dp * cp * tp" +
                      (about.independent_experts ? " * ep = " : " = ") + std::to_string(about.world()));
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
      refuse(about, "rank " + std::to_string(r) + " has coordinates pp " + std::to_string(pp) + ", dp " +
                        std::to_string(dp) + (of_ep > 1 ? ", ep " + std::to_string(ep) : "") +
                        (about.cp > 1 ? ", cp " + std::to_string(cp) : "") + ", tp " + std::to_string(tp) +
                        "; every rank needs its own, below the plan's degrees");
    taken[cell] = true;
  }
}

void check_lanes(const description& about) {
  for (std::size_t pp = 0; pp < about.layouts.size(); ++pp)
    if (const auto lanes = about.layouts[pp].lanes; lanes.empty() || !lanes[0].computes)
      refuse(about, "lane 0 of pipeline coordinate " + std::to_string(pp) + " must be there and compute");
}

void check_link(const description& about, int rank, const lane_communicator& k) {
  const rank_row& row = about.ranks[static_cast<std::size_t>(rank)];
  const auto lanes = about.layouts[static_cast<std::size_t>(row.pp)].lanes;
  const std::string who = "rank " + std::to_string(rank);
  if (k.lane < 0 || static_cast<std::size_t>(k.lane) >= lanes.size())
    refuse(about, who + " has a communicator on lane " + std::to_string(k.lane) + "; there are " +
                      std::to_string(lanes.size()));
  const std::string on =
      std::string(" over ") + name(k.over) + " on lane " + lanes[static_cast<std::size_t>(k.lane)].name;
  if (k.communicator < 0 || static_cast<std::size_t>(k.communicator) >= about.communicators.size())
    refuse(about, who + " names communicator " + std::to_string(k.communicator) + on + "; there are " +
                      std::to_string(about.communicators.size()));
  const communicator& c = about.communicators[static_cast<std::size_t>(k.communicator)];
  if (std::find(c.ranks.begin(), c.ranks.end(), rank) == c.ranks.end())
    refuse(about, who + " has" + on + " communicator " + c.name + ", whose ranks do not include it");
  if (k.over == over::peer && c.ranks.size() != 2)
    refuse(about, std::string("communicator ") + c.name + on + " has " + std::to_string(c.ranks.size()) +
                      " ranks; the first sends to the second, and there are no others");
}

// Lanes posting on one communicator would meet the other ranks' in no order.
void check_links(const description& about, int rank) {
  const auto links = about.ranks[static_cast<std::size_t>(rank)].links;
  for (std::size_t i = 0; i < links.size(); ++i) {
    check_link(about, rank, links[i]);
    for (const lane_communicator& other : links.first(i)) {
      if (other.communicator == links[i].communicator)
        refuse(about, "rank " + std::to_string(rank) + " has communicator " +
                          about.communicators[static_cast<std::size_t>(other.communicator)].name +
                          " twice; each is one lane's, and of one kind");
      if (other.lane == links[i].lane && other.over == links[i].over)
        refuse(about, "rank " + std::to_string(rank) + " has two communicators over " + name(other.over) +
                          " on lane " + std::to_string(other.lane));
    }
  }
}

}  // namespace

void check(const program& p) {
  const description& about = p.about;
  check_head(about);
  if (about.trains != (p.train != nullptr))
    refuse(about, about.trains ? "its tables say that it trains, and it has no training step"
                               : "its tables say that it has forwards alone, and it has a training step");
  check_coordinates(about);
  check_lanes(about);
  for (int r = 0; r < about.world(); ++r) check_links(about, r);
}

}  // namespace rankc::runtime::host
