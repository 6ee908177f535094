// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/schedule/check.hpp>
#include <rankc/schedule/timing.hpp>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "portfolio.hpp"

namespace timing_test {

using namespace rankc;
using enum rankc::action_kind;

namespace {

static_assert(total(collect(schedules::one_f_one_b{8}, 4)).makespan == 3 * (8 + 3));
static_assert(total(collect(schedules::one_f_one_b{8}, 4)).peak() == 4);
static_assert(total(collect(schedules::zero_bubble_v{8}, 4)).window_bubble == 0);
static_assert(lower_bound(4, 2, 8) == total(collect(schedules::zero_bubble_v{8}, 4)).makespan);

/// A table for one rank with these actions.
action_table on_one_rank(std::vector<action> actions, int stages, int microbatches) {
  const int n = static_cast<int>(actions.size());
  return {std::move(actions),
          {0, n},
          std::vector<int>(static_cast<std::size_t>(stages), 0),
          microbatches,
          false,
          {},
          0};
}

std::string refusal(const action_table& t) {
  report out;
  check_actions(out, t);
  return out.empty() ? "" : std::to_string(out[0].id) + ": " + std::string(out[0].text.view());
}

}  // namespace

TEST_CASE("bubbles and peaks of the published schedules are those measured on their authors' programs") {
  std::ifstream in(RANKC_ORACLES "/figures.txt");
  std::string line;
  std::map<std::string, int> compared;
  for (std::getline(in, line); std::getline(in, line);) {
    CAPTURE(line);
    std::istringstream words(line);
    std::string name, priced;
    asked a;
    double bubble, window, peak;
    words >> name >> a.pp >> a.stages_per_rank >> a.microbatches >> priced >> bubble >> window >> peak;
    REQUIRE(!words.fail());
    costs c;
    if (priced == "transformer") c = {.input_grad = 1.2, .weight_grad = 0.8, .send = 0.1};
    if (priced == "overlap") c = {.send = 0.1, .overlap = 0.75};
    for (const known_schedule& s : portfolio) {
      if (s.name != name) continue;
      const auto t = s.collect(a);
      REQUIRE(t);
      const totals all = total(*t, c);
      const int share = t->bidirectional() ? 1 : a.stages_per_rank;
      CHECK(std::abs(100 * all.bubble - bubble) < 0.00501);
      CHECK(std::abs(100 * all.window_bubble - window) < 0.00501);
      CHECK(static_cast<double>(all.peak()) / share == peak);
      CHECK(lower_bound(*t, c) <= all.makespan);
      ++compared[name + " " + priced];
    }
  }
  std::map<std::string, int> expected;
  for (const char* priced : {"even", "transformer", "overlap"})
    for (const known_schedule& s : portfolio) {
      const bool stages_are_free = s.name.starts_with("interleaved") || s.name == "looped_bfs";
      expected[std::string(s.name) + " " + priced] = stages_are_free ? 27 : 9;
    }
  CHECK(compared == expected);
}

TEST_CASE("the times of a schedule are those that the costs give") {
  const action_table t = collect(schedules::gpipe{1}, 2);
  const timing at = time(t, {.forward = 2, .input_grad = 3, .weight_grad = 5, .send = 0.5, .stage = {1, 2}});
  CHECK(at.begin == std::vector<double>{0, 23, 2.5, 6.5});
  CHECK(at.end == std::vector<double>{2, 31, 6.5, 22.5});
  CHECK(at.makespan == 31);
  CHECK(at.bubble_per_rank[0] == doctest::Approx(1 - 10 / 31.0));
  CHECK(at.window_bubble == doctest::Approx(1 - 10 / 31.0));
}

TEST_CASE("the halves of an OVERLAP await both inputs, end together and share their time") {
  const action_table t = on_one_rank({{F, 0, 0}, {F, 0, 1, true}, {B, 0, 0}, {B, 0, 1}}, 1, 2);
  CHECK(refusal(t) == "");
  const timing at = time(t, {.overlap = 0.75});
  CHECK(at.begin == std::vector<double>{0, 1, 1, 3.25});
  CHECK(at.end == std::vector<double>{1, 3.25, 3.25, 5.25});
  CHECK(at.peak() == 2);
}

TEST_CASE("an OVERLAP is of two actions of one rank that do not need each other") {
  CHECK(refusal(on_one_rank({{F, 0, 0, true}, {B, 0, 0}}, 1, 1)) ==
        "304: rank 0 waits for 0F0 before OVERLAP(0F0,0B0), for ever; order each rank's actions by their "
        "data: F after F of the "
        "stage before, B after B of the stage after");
  CHECK(refusal(on_one_rank({{F, 0, 0}, {B, 0, 0, true}}, 1, 1)) ==
        "302: rank 0 overlaps 0B0 with nothing; an OVERLAP joins two consecutive actions");
  CHECK(refusal(on_one_rank({{F, 0, 0, true}, {F, 0, 1, true}, {F, 0, 2}}, 1, 3))
            .starts_with("302: rank 0 overlaps 0F1 with two"));
  CHECK(refusal(on_one_rank({{F, 0, 0, true}, {F, 0, 0}}, 1, 1)).starts_with("302: rank 0 runs 0F0, but"));
}

TEST_CASE("a bidirectional schedule runs each half of the microbatches on its own ranks") {
  action_table t = collect(schedules::dual_pipe{4}, 2);
  CHECK(refusal(t) == "");
  t.reversed_from = 1;
  CHECK(refusal(t) == "302: rank 0 has 0F1, but stage 0 is on rank 1 for microbatch 1");
  t.reversed_rank_of_stage = {1};
  CHECK(refusal(t) ==
        "302: one direction has 2 stages, the other 1; every stage is on one rank for each direction");
  t.reversed_rank_of_stage = {1, 2};
  CHECK(refusal(t) == "302: stage 1 is on rank 2, but ranks end at 1");
}

TEST_CASE("a forward without a backward leaves nothing behind") {
  const auto t = collect(schedules::looped_bfs{.microbatches = 5, .inference = true}, 2);
  CHECK(total(t).peak() == 1);
  CHECK(total(t).makespan == 11);
  CHECK(lower_bound(t) == 11);
}

TEST_CASE(
    "no order beats the lower bound, and one microbatch alone takes it: backward returns over every send, "
    "inference over none") {
  int compared = 0, with_sends = 0;
  for (const known_schedule& s : portfolio)
    for (int pp = 1; pp <= 4; ++pp)
      for (int per_rank = 1; per_rank <= 3; ++per_rank)
        for (int m : {1, 2, 6})
          for (const bool inference : {false, true})
            for (const double send : {0.0, 0.5, 4.0}) {
              const auto t = s.collect({pp, per_rank, m, inference});
              if (!t) continue;
              CAPTURE(std::string(s.name));
              CAPTURE(pp);
              CAPTURE(per_rank);
              CAPTURE(m);
              CAPTURE(inference);
              CAPTURE(send);
              const costs c{.input_grad = 1.25, .weight_grad = 0.75, .send = send};
              const double bound = lower_bound(*t, c), makespan = total(*t, c).makespan;
              CHECK(bound <= makespan + 1e-9);
              ++compared;
              if (m > 1 || t->bidirectional()) continue;
              int hops = 0;
              for (int stage = 1; stage < t->stages(); ++stage)
                hops += t->rank_of_stage[stage] != t->rank_of_stage[stage - 1];
              // The time of one microbatch through all stages, and back if there is a backward: the input
              // gradients of all stages, and the first stage's W.
              const double way =
                  t->stages() + hops * send + (inference ? 0 : 1.25 * t->stages() + hops * send + 0.75);
              CHECK(bound >= way - 1e-9);
              if (inference) CHECK(bound == doctest::Approx(makespan));
              with_sends += hops > 0 && inference && send > 0;
            }
  CHECK(compared == 636);
  CHECK(with_sends == 24);
}

}  // namespace timing_test
