// SPDX-License-Identifier: Apache-2.0
// The resources that a plan's ranks open on their GPUs, counted from the plan, against the tables of its
// program.
#include <doctest/doctest.h>

#include <rankc/codegen/lowered.hpp>
#include <rankc/memory/opened.hpp>

#include <algorithm>
#include <set>

#include "plans.hpp"

namespace opened_test {

using namespace rankc::codegen;

namespace {

int ranks_seen = 0, with_edges = 0, with_ties = 0, with_overlap = 0;

void check_counts(const rankc::plan_data& plan) {
  const lowered l = lower(plan, dtype::f32, target::cuda);
  const rankc::layout mesh(plan.dims);
  for (int rank = 0; rank < plan.dims.world; ++rank) {
    const int pp = mesh.at(rank)[rankc::axis::pp];
    const auto& own = l.communicator_of[static_cast<std::size_t>(rank)];
    const auto& links = l.ranks[static_cast<std::size_t>(pp)].links;
    const bool ties = std::any_of(links.begin(), links.end(),
                                  [](const lane_link& k) { return k.over == rankc::runtime::over::tied; });
    const rankc::cuda::opened o = rankc::opened_by(mesh, plan.actions, pp, ties);
    const std::set<int> named(own.begin(), own.end());
    CHECK(named.size() == own.size());
    CHECK(o.groups + o.edges == static_cast<int>(named.size()));
    const auto& lanes = l.ranks[static_cast<std::size_t>(pp)].lanes;
    CHECK(o.computing_lanes ==
          std::count_if(lanes.begin(), lanes.end(), [](const lane& each) { return each.computes; }));
    CHECK(bytes_beside_arena(l, l.ranks[static_cast<std::size_t>(pp)]) ==
          (std::size_t{576} + 64 * o.computing_lanes +
           (plan.dims.world > 1 ? 336 + 512 * (named.size() + 1) : 0))
              << 20);
    ++ranks_seen;
    with_edges += o.edges > 0;
    with_ties += ties;
    with_overlap += o.computing_lanes > 1;
  }
}

}  // namespace

TEST_CASE("every communicator that a rank opens is counted, and that of all processes") {
  for (const programs::layout& l : programs::layouts) {
    CAPTURE(l.name);
    check_counts(programs::make(programs::jobs[0], l));
  }
  for (const programs::pipeline& p : programs::pipelines()) {
    CAPTURE(p.job);
    CAPTURE(p.layout);
    check_counts(programs::make(p));
  }
  CHECK(ranks_seen > 100);
  CHECK(with_edges > 100);
  CHECK(with_ties > 10);
  CHECK(with_overlap > 10);
}

}  // namespace opened_test
