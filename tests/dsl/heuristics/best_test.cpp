// SPDX-License-Identifier: Apache-2.0
// best_schedule against Sea AI Lab's cost-aware schedulers, and against the portfolio.
#include <doctest/doctest.h>

#include <rankc/rankc.hpp>
#include <rankc/schedules/best.hpp>
#include <rankc/schedule/check.hpp>

#include "../../some_of.hpp"
#include "figures.hpp"

using namespace rankc;

namespace {

constexpr bool sound(const action_table& t) {
  report out;
  check_actions(out, t);
  return out.empty();
}

}  // namespace

TEST_CASE("costs and a memory limit: no worse than Sea AI Lab's") {
  int lines = 0, compared = 0, better = 0;
  for (const figures& f : read_figures()) {
    if (!f.name.starts_with("auto")) continue;
    if (!rankc::test::takes(static_cast<std::size_t>(lines++))) continue;
    const schedule_choice c = best_schedule({f.pp, f.stages_per_rank, f.microbatches, f.cost, f.peak});
    CAPTURE(f.name);
    CAPTURE(f.pp);
    CAPTURE(f.microbatches);
    CAPTURE(f.cost.input_grad);
    CAPTURE(f.peak);
    REQUIRE(sound(c.table));
    CHECK(c.found.makespan <= f.makespan * (1 + 1e-9));
    CHECK(c.found.peak() <= f.peak);
    CHECK(c.found.makespan <= c.published_makespan);
    CHECK(c.over_bound() >= -1e-9);
    ++compared;
    better += c.found.makespan < f.makespan * (1 - 1e-9);
  }
  CHECK(lines == 90);
  MESSAGE("better on " << better << " of " << compared);
}

TEST_CASE("a slow stage: no published schedule is sooner done") {
  for (const int v : {1, 2})
    for (const int slow : {0, 2, 3}) {
      schedule_request q{.pp = 4, .stages_per_rank = v, .microbatches = 8, .runs = 4000};
      q.cost.stage.assign(static_cast<std::size_t>(4 * v), 1);
      q.cost.stage[static_cast<std::size_t>(slow)] = 1.75;
      const schedule_choice c = best_schedule(q);
      CAPTURE(v);
      CAPTURE(slow);
      REQUIRE(sound(c.table));
      CHECK(c.found.makespan == total(c.table, q.cost).makespan);
      CHECK(c.over_bound() >= -1e-9);
      int published = 0;
      detail::for_each_published(q, [&](std::string_view name, const action_table& t) {
        CAPTURE(name);
        CHECK(c.found.makespan <= total(t, q.cost).makespan);
        ++published;
      });
      CHECK(published >= 7);
      const costs even{.stage = std::vector<double>(q.cost.stage.size(), 1)};
      CHECK(c.found.makespan > best_schedule({4, v, 8, even, q.memory_limit, 100}).found.makespan);
    }
}

TEST_CASE("tight memory, down to one microbatch at a time") {
  for (int v = 1; v <= 3; ++v)
    for (int pp = 1; pp <= 4; ++pp) {
      double last = 0;
      for (int limit = pp * v; limit >= v; --limit) {
        const schedule_choice c = best_schedule({pp, v, 6, {1, 1.25, 0.75, 0.3}, limit, 300});
        CAPTURE(v);
        CAPTURE(pp);
        CAPTURE(limit);
        REQUIRE(sound(c.table));
        CHECK(c.found.peak() <= limit);
        last = c.found.makespan;
      }
      // The makespan if microbatches run one after the other: each passes through all stages and back, and
      // only the last W of its last stage overlaps.
      CHECK(last <= 6 * (pp * v * 3 + 2 * (pp - 1) * v * 0.3) + 1e-9);
      CHECK(best_schedule({pp, v, 6, {}, v - 1, 300}).table.actions.empty());
    }
}

TEST_CASE("the number of stages on a rank is found too, where it is left open") {
  const schedule_request open{.pp = 4, .stages_per_rank = 0, .microbatches = 8, .runs = 500};
  schedule_request q = open;
  q.cost.send = 0.05;
  const schedule_choice found = best_schedule(q);
  REQUIRE(sound(found.table));
  CHECK(found.over_bound() >= 0);
  for (int v = 1; v <= 4; ++v) {
    const costs share{.forward = 1.0 / v, .input_grad = 1.0 / v, .weight_grad = 1.0 / v, .send = 0.05};
    CHECK(found.found.makespan <=
          best_schedule({4, v, 8, share, std::numeric_limits<int>::max(), 500}).found.makespan);
  }
  CHECK(found.table.stages() > 4);
  q = open;
  q.layers = 7;
  CHECK(best_schedule(q).table.stages() == 4);
  q = open;
  q.cost.stage.assign(8, 1);
  CHECK(best_schedule(q).table.stages() == 8);
  q = open;
  q.memory_limit = 2;
  const schedule_choice tight = best_schedule(q);
  REQUIRE(sound(tight.table));
  CHECK(tight.found.peak() * 4 <= 2 * tight.table.stages());
}

namespace {

inline constexpr models::gpt2 gpt{.layers = 4, .hidden = 8, .heads = 2, .ffn = 8, .vocab = 8};
inline constexpr training recipe{.seq = 8, .global_batch = 8, .precision = f64};

// In a plan, the compiler runs the search.
inline constexpr plan planned{
    .model = gpt,
    .dims = parallel_dims{.world = 2, .pp = 2},
    .schedule = schedules::best{.microbatches = 4, .stages_per_rank = 2, .memory_limit = 4},
    .recipe = recipe,
    .cluster = clusters::cpu};
static_assert(valid<planned>);
static_assert(total(schedules::best{.microbatches = 4}.table(2)).makespan == 13, "the lower bound");

}  // namespace
