// SPDX-License-Identifier: Apache-2.0
// Lowered programs compute the model: example plans, odd models, all schedules, and large worlds.
#include <doctest/doctest.h>

#include <fuzz/plan.hpp>
#include <lora/plans.hpp>
#include <odd/plans.hpp>
#include <programs/plans.hpp>

#include "../../example_plans.hpp"
#include "../../some_of.hpp"
#include "plans.hpp"
#include "subject.hpp"

namespace accepted_test {

using namespace equivalence_tests;

namespace {

/// The number of a plan's programs that are accepted, and that have rows without facts. A plan's two steps
/// are checked together.
struct tally {
  int accepted = 0, unknown = 0;
  void count(const rankc::plan_data& plan, target to, dtype type) {
    std::vector<kept_state> steps;
    for (const bool evaluates : {false, true}) {
      if (!evaluates && plan.actions.inference) continue;
      const subject s(plan, to, type, evaluates);
      steps.push_back(kept_by(s.p));
      const equivalence e = s.check();
      CAPTURE(plan.name);
      CAPTURE(evaluates);
      CHECK_MESSAGE((e.holds || e.has_unknown_row), s.reason());
      CHECK(e.holds == !e.claims.empty());
      accepted += e.holds;
      unknown += e.has_unknown_row;
    }
    const equivalence together = check_steps(steps, specify(plan));
    CHECK_MESSAGE(together.holds, (together.reasons.empty() ? "" : together.reasons.front()));
  }
};

}  // namespace

TEST_CASE("the example plans compute their models") {
  tally all;
  std::size_t n = 0;
  for (const rankc::plan_data& plan : examples::plans())
    for (const auto& [to, type] : {std::pair{target::host, dtype::f64},
                                   {target::host, dtype::f32},
                                   {target::cuda, dtype::f32},
                                   {target::cuda, dtype::bf16}})
      if (rankc::test::takes(n++)) all.count(plan, to, type);
  CHECK(n == 44);
  CHECK(all.accepted == 2 * rankc::test::some_of(44));
  CHECK(all.unknown == 0);
}

TEST_CASE("odd models compute theirs, and so do those with a user's own rows") {
  tally all;
  int plans = 0;
  std::size_t n = 0;
  for (const split_plan& p : odd::plans()) {
    if (!rankc::test::takes(n++)) continue;
    ++plans;
    all.count(p.plan, target::host, dtype::f64);
    all.count(p.plan, target::cuda, dtype::f32);
  }
  CHECK(n == 305);
  CHECK(all.accepted == 4 * plans);
  CHECK(all.unknown == 0);
}

TEST_CASE("plans that adapt or freeze compute their models") {
  tally all;
  int plans = 0;
  std::size_t n = 0;
  for (const split_plan& v : adapting::plans()) {
    if (!rankc::test::takes(n++)) continue;
    ++plans;
    all.count(v.plan, target::host, dtype::f64);
    for (const dtype type : {dtype::f32, dtype::bf16}) all.count(v.plan, target::cuda, type);
  }
  CHECK(n == 67);
  CHECK(all.accepted == 2 * 3 * plans);
  CHECK(all.unknown == 0);
}

TEST_CASE("every schedule computes the model") {
  tally all;
  int trained = 0, forwards = 0;
  std::size_t n = 0;
  for (const programs::pipeline& p : programs::pipelines()) {
    if (!p.inference && !rankc::test::takes(n++)) continue;
    all.count(programs::make(p), target::host, dtype::f64);
    ++(p.inference ? forwards : trained);
  }
  CHECK(n == 57);
  CHECK(forwards == 3);
  CHECK(all.accepted == 2 * trained + forwards);
}

TEST_CASE("drawn plans compute their models") {
  tally all;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> drawn{
      {7, 770},
      {7, 20204},
      {7, 20205},   // ops that each write a part of packed rows
      {22, 124},    // x + scale(x, -1), which is zero
      {22, 2847}};  // a stage without parameters, on two ranks that share others
  for (std::uint64_t i = 0; i < 100; ++i) drawn.emplace_back(7, i);
  for (const auto& [seed, index] : drawn) {
    const rankc::plan_data plan = fuzz::make(fuzz::draw_plan(seed, index), "drawn");
    if (!plan.diagnostics.empty()) continue;
    all.count(plan, target::host, dtype::f64);
    all.count(plan, target::cuda, dtype::f32);
  }
  CHECK(all.accepted > 200);
  CHECK(all.unknown == 0);
}

TEST_CASE("worlds whose ranks stand for more compute the model") {
  tally all;
  const int worlds[][3]{{33, 1, 2}, {64, 2, 1}, {16, 4, 2}, {1, 8, 16}, {32, 8, 4}, {1024, 1, 1}};
  for (const auto& [dp, tp, pp] : worlds) {
    const rankc::plan_data plan = large_world(dp, tp, pp);
    REQUIRE_MESSAGE(plan.diagnostics.empty(), plan.diagnostics.front().text);
    all.count(plan, target::cuda, dtype::bf16);
  }
  CHECK(all.accepted == 12);
}

TEST_CASE("parameters in shards: the model is computed, with all ranks in the program or some") {
  tally all;
  for (const dtype type : {dtype::f32, dtype::f64}) all.count(sharded_gpt(), target::host, type);
  const int worlds[][4]{{1, 1, 1, 70}, {4, 2, 2, 8}, {16, 2, 4, 2}, {4, 1, 1, 32}, {1, 1, 2, 1024}};
  for (const auto& [dp, tp, pp, shards] : worlds) {
    const rankc::plan_data plan = large_world(dp, tp, pp, shards);
    REQUIRE_MESSAGE(plan.diagnostics.empty(), plan.diagnostics.front().text);
    all.count(plan, target::cuda, dtype::bf16);
  }
  CHECK(all.accepted == 14);
}

}  // namespace accepted_test
