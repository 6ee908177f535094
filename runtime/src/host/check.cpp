// SPDX-License-Identifier: Apache-2.0
// Checks the tables of a program.
#include "check.hpp"

#include "names.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace rankc::host {

using namespace rankc::runtime;

namespace {

[[noreturn]] void refuse(const description& about, const std::string& text) {
  throw failure(1, std::string("program ") + about.name + ": " + text);
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
                      std::to_string(about.pp) + " and pp * dp * tp = " + std::to_string(about.world()));
}

void check_coordinates(const description& about) {
  std::vector<bool> taken(about.ranks.size());
  for (std::size_t r = 0; r < about.ranks.size(); ++r) {
    const auto [pp, dp, tp, communicator] = about.ranks[r];
    const bool inside = pp >= 0 && pp < about.pp && dp >= 0 && dp < about.dp && tp >= 0 && tp < about.tp;
    const auto cell = inside ? static_cast<std::size_t>((pp * about.dp + dp) * about.tp + tp) : 0;
    if (!inside || taken[cell])
      refuse(about, "rank " + std::to_string(r) + " has coordinates pp " + std::to_string(pp) + ", dp " +
                        std::to_string(dp) + ", tp " + std::to_string(tp) +
                        "; every rank needs its own, below the plan's degrees");
    taken[cell] = true;
  }
}

void check_communicator(const description& about, int rank, role what) {
  const int index = about.ranks[static_cast<std::size_t>(rank)].communicator[static_cast<std::size_t>(what)];
  if (index < 0) return;
  if (static_cast<std::size_t>(index) >= about.communicators.size())
    refuse(about, "rank " + std::to_string(rank) + " names communicator " + std::to_string(index) +
                      " for role " + name(what) + "; there are " +
                      std::to_string(about.communicators.size()));
  const communicator& c = about.communicators[static_cast<std::size_t>(index)];
  if (std::find(c.ranks.begin(), c.ranks.end(), rank) == c.ranks.end())
    refuse(about, "rank " + std::to_string(rank) + " has role " + name(what) + " on communicator " + c.name +
                      ", whose ranks do not include it");
  if (what >= role::to_next && what <= role::from_next && c.ranks.size() != 2)
    refuse(about, std::string("communicator ") + c.name + " of role " + name(what) + " has " +
                      std::to_string(c.ranks.size()) + " ranks; a pipeline edge has 2");
}

// Two threads posting on one communicator would meet the other ranks' in no order.
void check_beside(const description& about, int rank) {
  const rank_row& row = about.ranks[static_cast<std::size_t>(rank)];
  const int tp = row.communicator[static_cast<int>(role::tp)];
  const int beside = row.communicator[static_cast<int>(role::tp_beside)];
  if (about.tp > 1 && about.layouts[static_cast<std::size_t>(row.pp)].overlaps && (beside < 0 || beside == tp))
    refuse(about, "rank " + std::to_string(rank) + " overlaps and has " +
                      (beside < 0 ? "no communicator" : "that of tp") +
                      " for role tp_beside; the second stream needs a communicator of its own");
}

}  // namespace

void check(const program& p) {
  const description& about = p.about;
  check_head(about);
  if (about.trains != (p.train != nullptr))
    refuse(about, about.trains ? "its tables say that it trains, and it has no training step"
                               : "its tables say that it has forwards alone, and it has a training step");
  check_coordinates(about);
  for (int r = 0; r < about.world(); ++r) {
    for (int k = 0; k < n_roles; ++k) check_communicator(about, r, role{k});
    check_beside(about, r);
  }
}

}  // namespace rankc::host
