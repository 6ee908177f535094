// SPDX-License-Identifier: Apache-2.0
// RC331, RC332: the placements of stages that can be lowered. Others are refused, although they are sound.
#pragma once
#include <rankc/schedule/neighbours.hpp>

#include <span>
#include <vector>

namespace rankc {

namespace detail {

/// RC332: a rank without a stage has nothing to run.
constexpr void check_every_rank(report& out, const action_table& t) {
  for (int rank = 0; rank < t.ranks(); ++rank) {
    bool has_stage = false;
    for (int s = 0; s < t.stages(); ++s) has_stage |= t.has_stage(rank, s);
    if (has_stage) continue;
    refuse(out, 332) << "pipeline rank " << rank << " has none of the " << t.stages()
                     << " stages; every rank has at least 1: take fewer "
                     << "ranks, or more stages";
    return;
  }
}

/// RC331: gradients of a parameter that two pipeline ranks hold are summed between the two. A rank is in at
/// most one such pair.
class copy_pairs {
 public:
  constexpr explicit copy_pairs(int ranks) : partner_(static_cast<std::size_t>(ranks), -1) {}

  /// Adds the ranks that hold one parameter.
  constexpr void add(report& out, const std::vector<int>& holders) {
    for (int a : holders)
      for (int b : holders) {
        if (a == b) continue;
        if (partner_[a] < 0) partner_[a] = b;
        if (partner_[a] == b || refused_) continue;
        refused_ = true;
        refuse(out, 331)
            << "pipeline rank " << a << " has parameters in common with rank " << partner_[a]
            << " and with rank " << b
            << ", and this version sums gradients between two ranks alone; put the stages of both "
               "directions, and those of "
            << "tied layers, on the same pairs of ranks, as dual_pipe does";
      }
  }

 private:
  std::vector<int> partner_;
  bool refused_ = false;
};

}  // namespace detail

/// Appends the reasons for which a sound table cannot be lowered. `shared`: for each parameter that several
/// layers use, the stages of these layers.
/// Errors: RC331, RC332.
constexpr void check_lowerable(report& out, const action_table& t, std::span<const std::vector<int>> shared) {
  const std::size_t before = out.size();
  detail::check_every_rank(out, t);
  if (out.size() > before) return;
  detail::copy_pairs pairs(t.ranks());
  const auto add_holders = [&](const std::vector<int>& stages) {
    std::vector<int> holders;
    for (int s : stages) {
      detail::add_once(holders, t.rank_of_stage[s]);
      if (t.bidirectional()) detail::add_once(holders, t.reversed_rank_of_stage[s]);
    }
    pairs.add(out, holders);
  };
  if (t.bidirectional())
    for (int s = 0; s < t.stages(); ++s) add_holders({s});
  for (const std::vector<int>& stages : shared) add_holders(stages);
}

}  // namespace rankc
