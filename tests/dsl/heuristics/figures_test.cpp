// SPDX-License-Identifier: Apache-2.0
// The heuristic schedules against Sea AI Lab's: no higher peak and no longer makespan.
#include <doctest/doctest.h>

#include <rankc/schedule/check.hpp>
#include <rankc/schedules/gpipe.hpp>
#include <rankc/schedules/group_interleaved.hpp>
#include <rankc/schedules/one_f_one_b_v.hpp>
#include <rankc/schedules/v_half.hpp>
#include <rankc/schedules/v_min.hpp>
#include <rankc/schedules/zero_bubble_1p.hpp>
#include <rankc/schedules/zero_bubble_2p.hpp>
#include <rankc/schedules/zero_bubble_v_greedy.hpp>

#include <algorithm>
#include <map>
#include <string>

#include "figures.hpp"

using namespace rankc;

namespace {

action_table ours(const figures& f) {
  const int m = f.microbatches;
  if (f.name == "zero_bubble_1p") return collect(schedules::zero_bubble_1p{m}, f.pp);
  if (f.name == "zero_bubble_2p") return collect(schedules::zero_bubble_2p{m}, f.pp);
  if (f.name == "zero_bubble_v_greedy") return collect(schedules::zero_bubble_v_greedy{m}, f.pp);
  if (f.name == "v_half") return collect(schedules::v_half{m}, f.pp);
  if (f.name == "v_min") return collect(schedules::v_min{m}, f.pp);
  if (f.name == "one_f_one_b_v") return collect(schedules::one_f_one_b_v{m}, f.pp);
  if (f.name == "group_interleaved") return collect(schedules::group_interleaved{m}, f.pp);
  if (f.name == "group_interleaved_half")
    return collect(schedules::group_interleaved{m, 2, (f.pp + 1) / 2}, f.pp);
  return {};
}

template <class Schedule>
constexpr totals figures_of(int pp, int microbatches) {
  const action_table t = Schedule{microbatches}.table(pp);
  report out;
  check_actions(out, t);
  if (!out.empty()) return {};
  return total(t, costs{});
}
// The same tables at compile time. For many microbatches their steady state is repeated.
static_assert(figures_of<schedules::zero_bubble_1p>(2, 4).makespan == 13, "the lower bound");
static_assert(figures_of<schedules::zero_bubble_2p>(3, 16).makespan == 50, "the lower bound");
static_assert(figures_of<schedules::zero_bubble_v_greedy>(2, 17).makespan == 103, "the lower bound");
static_assert(figures_of<schedules::v_half>(2, 3).makespan == 19, "the lower bound");
static_assert(figures_of<schedules::v_half>(4, 11).makespan == 71);
static_assert(figures_of<schedules::v_min>(4, 24).makespan == 155);
static_assert(figures_of<schedules::one_f_one_b_v>(4, 13).makespan == 93);
static_assert(figures_of<schedules::one_f_one_b_v>(5, 24).makespan == 162, "a lower bound, as below");

template <class Schedule>
void check_any_size(int pp, int microbatches, int limit) {
  CAPTURE(Schedule::name);
  CAPTURE(pp);
  CAPTURE(microbatches);
  const totals got = figures_of<Schedule>(pp, microbatches);
  REQUIRE(got.makespan > 0);
  CHECK(got.peak() <= limit);
}

}  // namespace

TEST_CASE("any number of ranks and microbatches, within the memory that is promised") {
  for (int pp = 1; pp <= 7; ++pp)
    for (int m = 1; m <= 9; ++m) {
      check_any_size<schedules::zero_bubble_1p>(pp, m, pp);
      check_any_size<schedules::zero_bubble_2p>(pp, m, 2 * pp);
      check_any_size<schedules::zero_bubble_v_greedy>(pp, m, 2 * pp);
      check_any_size<schedules::v_half>(pp, m, 2 * ((pp + 2) / 2));
      check_any_size<schedules::v_min>(pp, m, 2 * ((pp + 4) / 3));
      check_any_size<schedules::one_f_one_b_v>(pp, m, 2 * (2 * pp / 3 + 1));
      for (int group = 1; group <= pp; ++group) {
        const action_table t = collect(schedules::group_interleaved{m, 3, group}, pp);
        report out;
        check_actions(out, t);
        REQUIRE(out.empty());
        CHECK(total(t).peak() <= 2 * group + pp);
      }
    }
}

TEST_CASE("1F1B in a V is as short as its memory allows") {
  for (int pp = 1; pp <= 20; ++pp) {
    const int limit = 2 * (2 * pp / 3 + 1);
    for (int m = limit / 2 + 1; m <= limit / 2 + 2 * pp; m += pp) {
      CAPTURE(pp);
      CAPTURE(m);
      // The last rank's first backward comes after the first microbatch has passed all stages and pp - 1
      // stages back. Until then the rank runs at most `limit` forwards. At its end, the last gradient passes
      // pp - 1 stages back.
      const int first = 4 * pp - 2, bound = first + 6 * m - limit + 2 * (pp - 1);
      // When the last rank ends its last forward, it has run all backwards except `limit`. That forward's
      // microbatch goes to rank 0 and back.
      const int other_bound = first + 3 * (2 * m - limit) + 3 * (pp - 1) + 4 + 2 * (pp - 1);
      const totals got = figures_of<schedules::one_f_one_b_v>(pp, m);
      CHECK(got.makespan == std::max(bound, other_bound));
      CHECK(got.peak() <= limit);
    }
  }
}

TEST_CASE("any costs have an order within the memory that is promised") {
  const planned_costs all[]{
      {1, 1.25, 0.75, 0.3}, {1, 2, 1, 0}, {10, 11, 8, 1}, {1, 0.3, 2.5, 0.7}, {3, 1, 0.1, 5}};
  auto check = [](const auto& schedule, int pp, int limit) {
    CAPTURE(schedule.name);
    CAPTURE(pp);
    CAPTURE(schedule.microbatches);
    CAPTURE(schedule.cost.input_grad);
    const action_table t = schedule.table(pp);
    report out;
    check_actions(out, t);
    REQUIRE(out.empty());
    CHECK(total(t).peak() <= limit);
  };
  for (const planned_costs& cost : all)
    for (int pp = 1; pp <= 8; ++pp)
      for (int m = 1; m <= 16; ++m) {
        check(schedules::zero_bubble_1p{m, cost}, pp, pp);
        check(schedules::zero_bubble_2p{m, cost}, pp, 2 * pp);
        check(schedules::zero_bubble_v_greedy{m, cost}, pp, 2 * pp);
        check(schedules::v_half{m, cost}, pp, 2 * ((pp + 2) / 2));
        check(schedules::v_min{m, cost}, pp, 2 * ((pp + 4) / 3));
        check(schedules::one_f_one_b_v{m, cost}, pp, 2 * (2 * pp / 3 + 1));
      }
}

TEST_CASE("a stretched schedule is the one that many microbatches would have been given") {
  for (int pp = 1; pp <= 9; ++pp) {
    pipeline_load load = load_of(schedules::v_half{8 * pp + 20}, pp, {}, 2 * ((pp + 2) / 2));
    const action_pattern like{{0, 1, 0, 0}, pp % 2 ? 0.0 : 1.0};
    const action_table all = list_schedule(load, place(load, like), {});
    load.microbatches = 2 * pp + 4;
    const action_table few = list_schedule(load, place(load, like), {});
    CHECK(repeat_steady_state(few, time(few, {}).begin, 8 * pp + 20).actions == all.actions);
  }
  const action_table gpipe = collect(schedules::gpipe{8}, 4);
  CHECK(repeat_steady_state(gpipe, time(gpipe, {}).begin, 16)
            .actions.empty());  // nothing repeats: all forwards come first
}

TEST_CASE("makespan and peak are no worse than Sea AI Lab's") {
  std::map<std::string, int> lines, better;
  for (const figures& f : read_figures()) {
    if (f.name.starts_with("auto")) continue;  // tested in best_test.cpp
    const action_table t = ours(f);
    CAPTURE(f.name);
    CAPTURE(f.pp);
    CAPTURE(f.microbatches);
    report out;
    check_actions(out, t);
    REQUIRE_FALSE(t.actions.empty());
    REQUIRE(out.empty());
    const totals got = total(t, f.cost);
    CHECK(got.makespan <= f.makespan * (1 + 1e-9));
    CHECK(got.peak() <= f.peak);
    ++lines[f.name];
    better[f.name] += got.makespan < f.makespan * (1 - 1e-9) || got.peak() < f.peak;
  }
  const std::map<std::string, int> all{{"group_interleaved", 36},
                                       {"group_interleaved_half", 36},
                                       {"one_f_one_b_v", 36},
                                       {"v_half", 36},
                                       {"v_min", 36},
                                       {"zero_bubble_1p", 36},
                                       {"zero_bubble_2p", 36},
                                       {"zero_bubble_v_greedy", 36}};
  CHECK(lines == all);
  for (const auto& [name, n] : lines) MESSAGE(name << ": " << n << " lines, better on " << better[name]);
}
