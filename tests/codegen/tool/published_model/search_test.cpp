// SPDX-License-Identifier: Apache-2.0
// Complete searches against the Python original: sums over all candidates, and the ten best.
#include <doctest/doctest.h>

#include <set>

#include "searches.hpp"

using namespace oracle;

namespace {

void compare_plan(const problem& q, const best_plan& theirs) {
  const step_cost c = cost_of_step(q.on, q.by, theirs.plan, q.global_batch);
  for (std::size_t i = 0; i < std::size(step_cost_fields); ++i) {
    CAPTURE(step_cost_fields[i].name);
    CHECK(same(c.*step_cost_fields[i].at, theirs.stats[i]));
  }
}

/// Plans of equal time are compared as sets. Of the plans tied with the tenth, any may be listed.
void compare_top(const search_result& ours, const recorded_search& theirs) {
  const std::size_t listed = theirs.top.size();
  const auto of_tie = [&](int tie, const auto& list) {
    std::set<plan> plans;
    for (std::size_t i = 0; i < listed; ++i) {
      if (theirs.top[i].tie == tie) plans.insert(list[i].plan);
    }
    return plans;
  };
  REQUIRE(ours.top.size() >= listed);
  for (std::size_t i = 0; i < listed; ++i) {
    CHECK(same(ours.top[i].t, theirs.top[i].stats[0]));
    const int tie = theirs.top[i].tie;
    const bool cut = tie == theirs.top.back().tie && theirs.tied_with_tenth > 1;
    if (!cut) CHECK(of_tie(tie, ours.top) == of_tie(tie, theirs.top));
  }
  if (listed < 10) CHECK(ours.top.size() == listed);
  if (listed < 10 || theirs.tied_with_tenth == 0) return;
  const double tenth = ours.top[9].t;
  const auto tied = std::count_if(ours.top.begin(), ours.top.end(), [&](const ranked_plan& p) {
    return std::abs(p.t - tenth) <= 1e-12 * tenth;
  });
  CHECK(tied == theirs.tied_with_tenth);
}

}  // namespace

TEST_CASE("searches find what the Python finds") {
  int plans = 0;
  const std::vector<recorded_search> all = read_searches();
  for (const recorded_search& theirs : all) {
    CAPTURE(theirs.line);
    const search_result ours = search(theirs.of, 30);  // with room for the plans that tie with the tenth
    CHECK(ours.candidates == theirs.candidates);
    CHECK(ours.feasible == theirs.feasible);
    const double sums[] = {ours.sum_t, ours.sum_mem, ours.sum_t_feasible, ours.sum_mem_feasible};
    for (int i = 0; i < 4; ++i) CHECK(same(sums[i], theirs.sums[i]));
    if (ours.candidates > 0) {
      const double ends[] = {ours.min_t, ours.max_t, ours.min_mem, ours.max_mem};
      for (int i = 0; i < 4; ++i) CHECK(same(ends[i], theirs.ends[i]));
    }
    compare_top(ours, theirs);
    for (const best_plan& p : theirs.top) compare_plan(theirs.of, p);
    plans += static_cast<int>(theirs.top.size());
  }
  CHECK(all.size() == 455);
  CHECK(plans == 2044);
}
