// SPDX-License-Identifier: Apache-2.0
// A stage's actions that occur once per step, and the all-gathers of its weights: complete programs are
// sound, and a dropped, repeated or moved action is refused by its rule.
#include <doctest/doctest.h>

#include <rankc/schedule/check.hpp>
#include <rankc/schedule/communicate.hpp>
#include <rankc/schedule/complete.hpp>
#include <rankc/schedule/csv.hpp>
#include <rankc/schedule/fuse.hpp>
#include <rankc/schedule/gather.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <string>

#include "portfolio.hpp"

namespace stage_actions_test {

using namespace rankc;
using enum rankc::action_kind;

namespace {

action_table parsed(std::string_view text) {
  report out;
  action_table t = parse_csv(out, text);
  REQUIRE(out.empty());
  return t;
}

std::string refusal(const action_table& t) {
  report out;
  check_actions(out, t);
  REQUIRE(out.size() <= 1);
  return out.empty() ? "" : "RC" + std::to_string(out[0].id) + ": " + std::string(out[0].text.view());
}
std::string refusal(std::string_view text) { return refusal(parsed(text)); }

std::string row(const action_table& t, int rank) {
  std::string out;
  for (int i = t.begin[rank]; i < t.begin[rank + 1]; ++i)
    out += (out.empty() ? "" : " ") + std::string((sentence{} << "" << t.actions[i]).view());
  return out;
}

action_table without(action_table t, int at) {
  t.actions.erase(t.actions.begin() + at);
  for (int& b : t.begin) b -= b > at;
  return t;
}
action_table with(action_table t, int at, const action& a) {
  t.actions.insert(t.actions.begin() + at, a);
  for (int& b : t.begin) b += b > at;
  return t;
}
int rank_of(const action_table& t, int at) {
  return static_cast<int>(std::upper_bound(t.begin.begin(), t.begin.end(), at) - t.begin.begin()) - 1;
}

/// Whether a unidirectional table keeps the rules, by their definitions alone: positions on each rank.
bool is_in_order(const action_table& t) {
  for (int r = 0; r < t.ranks(); ++r) {
    int first_step = t.begin[r + 1], last_reduce = -1;
    std::map<int, int> last_gradient, reduces, reduced_at, steps, stepped_at, last;
    for (int i = t.begin[r]; i < t.begin[r + 1]; ++i) {
      const action& a = t.actions[i];
      if (a.kind == reduce_grad) {
        ++reduces[a.stage];
        reduced_at[a.stage] = last_reduce = i;
      }
      if (a.kind == step) {
        ++steps[a.stage];
        stepped_at[a.stage] = i;
        first_step = std::min(first_step, i);
      }
      if (a.kind == B || a.kind == I || a.kind == W) last_gradient[a.stage] = i;
      last[a.stage] = i;
    }
    for (int s = 0; s < t.stages(); ++s) {
      if (t.rank_of_stage[s] != r) continue;
      if (reduces[s] != 1 || steps[s] != 1 || reduced_at[s] < last_gradient[s] || stepped_at[s] < last[s])
        return false;
    }
    if (last_reduce > first_step) return false;
  }
  return true;
}

constexpr bool completed_alike(const auto& schedule, int pp) {
  const action_table at_once = complete(schedule, pp), after = complete(collect(schedule, pp));
  return at_once.actions == after.actions && at_once.begin == after.begin;
}
static_assert(completed_alike(schedules::zero_bubble_v{5}, 3) && completed_alike(schedules::dual_pipe{6}, 4));

void each_table(auto visit) {
  for (const known_schedule& s : portfolio)
    for (const asked& a : {asked{1, 1, 2}, asked{1, 2, 3}, asked{2, 1, 4}, asked{2, 2, 4}, asked{3, 2, 5},
                           asked{4, 2, 8}, asked{4, 3, 6}})
      if (const auto t = s.collect(a)) {
        CAPTURE(std::string(s.name));
        CAPTURE(a.pp);
        visit(*t);
      }
}

}  // namespace

TEST_CASE("what a schedule leaves unsaid is completed, directly behind the last gradients and at the end") {
  CHECK(row(complete(collect(schedules::one_f_one_b{2}, 2)), 0) == "0F0 0F1 0B0 0B1 0REDUCE_GRAD 0STEP");
  CHECK(row(complete(collect(schedules::zero_bubble_v{1}, 1)), 0) ==
        "0F0 1F0 1I0 1W0 1REDUCE_GRAD 0I0 0W0 0REDUCE_GRAD 0STEP 1STEP");
  CHECK(row(complete(parsed("0F0, 1F0, 1B0, 0F1, 1F1, OVERLAP(1B1,0B0), 0B1")), 0) ==
        "0F0 1F0 1B0 0F1 1F1 1B1 0B0 1REDUCE_GRAD 0B1 0REDUCE_GRAD 0STEP 1STEP");
  CHECK(row(complete(parsed("0F0, 1F0, 1B0, 0B0, 1REDUCE_GRAD, 0REDUCE_GRAD, 1STEP")), 0) ==
        "0F0 1F0 1B0 0B0 1REDUCE_GRAD 0REDUCE_GRAD 1STEP 0STEP");
  CHECK(row(complete(parsed("0F0, 1F0")), 0) == "0F0 1F0");
  const action_table two_ways =
      complete(collect(schedules::dual_pipe{4}, 2));  // both ranks reduce in the same order
  for (int r = 0; r < 2; ++r) CHECK(row(two_ways, r).ends_with(" 0REDUCE_GRAD 1REDUCE_GRAD 0STEP 1STEP"));
}

TEST_CASE("every completed schedule is sound, takes no longer, and stays as it is") {
  each_table([](const action_table& t) {
    const action_table all = complete(fuse_backward(t));
    CHECK(refusal(all) == "");
    CHECK(time(all).makespan == time(t).makespan);
    CHECK(communicate(all).slots == communicate(fuse_backward(t)).slots);
    CHECK(complete(all).actions == all.actions);
    for (int most = 1; most <= 3; ++most) {
      const action_table gathered = gather_weights(all, most);
      CHECK(refusal(gathered) == "");
      CHECK(time(gathered).makespan == time(t).makespan);
    }
  });
}

TEST_CASE("one dropped, repeated or moved is refused by its rule") {
  std::mt19937 random(11);
  std::map<std::string, int> by_rule;
  each_table([&](const action_table& plain) {
    if (plain.bidirectional()) return;
    const action_table t = gather_weights(complete(plain), 2);
    for (int at = 0; at < static_cast<int>(t.actions.size()); ++at) {
      const action a = t.actions[at];
      if (computes(a.kind)) continue;
      const std::string dropped = refusal(without(t, at)), twice = refusal(with(t, at, a));
      CHECK(dropped.substr(0, 5) == (a.kind <= action_kind::reshard ? "RC310" : "RC303"));
      CHECK(twice.substr(0, 5) == "RC310");
      ++by_rule[dropped.substr(0, 5)];

      const int r = rank_of(t, at),
                to = t.begin[r] + static_cast<int>(random() % (t.begin[r + 1] - t.begin[r] - 1));
      if (to > t.begin[r] && without(t, at).actions[to - 1].overlaps_next)
        continue;  // refused by RC302, see below
      const action_table moved = with(without(t, at), to, a);
      const std::string said = refusal(moved);
      ++by_rule[said.substr(0, 5)];
      if (a.kind < reduce_grad) CHECK((said.empty() || said.starts_with("RC310")));
      else CHECK(said.empty() == is_in_order(moved));
      if (a.kind == reduce_grad && !said.empty())
        CHECK((said.starts_with("RC310") || said.starts_with("RC304")));

      const int other = (r + 1) % t.ranks();
      const action_table less = without(t, at);
      if (other != r) CHECK(refusal(with(less, less.begin[other], a)).starts_with("RC302"));
    }
  });
  CHECK(by_rule["RC303"] > 50);
  CHECK(by_rule["RC304"] > 10);
  CHECK(by_rule["RC310"] > 50);
  CHECK(by_rule[""] > 20);
}

TEST_CASE("each refusal names the rank, the item and what is legal") {
  CHECK(refusal("0F0,0B0,0REDUCE_GRAD,0STEP\n1F0,1B0,1REDUCE_GRAD") ==
        "RC303: rank 1 never runs 1STEP; a schedule with any REDUCE_GRAD or STEP needs both for every stage, "
        "on each rank that has it");
  CHECK(refusal("0F0,0F1,0B0,0REDUCE_GRAD,0B1,0STEP") ==
        "RC310: rank 0 has 0B1 behind 0REDUCE_GRAD, which comes once, after the last gradient of the stage: "
        "put it behind 0B1");
  CHECK(refusal("0F0,0B0,0REDUCE_GRAD,0REDUCE_GRAD,0STEP") ==
        "RC310: rank 0 has 0REDUCE_GRAD behind 0REDUCE_GRAD, which comes once, after the last gradient of "
        "the stage: leave one out");
  CHECK(refusal("0UNSHARD,0F0,0B0,0REDUCE_GRAD,0STEP,0RESHARD") ==
        "RC310: rank 0 has 0RESHARD behind 0STEP, which comes once, after all else of the stage: put it "
        "behind 0RESHARD");
  CHECK(refusal("0F0,1F0,1B0,1REDUCE_GRAD,1STEP,0B0,0REDUCE_GRAD,0STEP") ==
        "RC304: rank 0 waits for 0REDUCE_GRAD on rank 0 before 1STEP, for ever; a STEP comes after the "
        "REDUCE_GRAD of every stage, "
        "and two ranks that share stages reduce them in one order");
  CHECK(refusal("0F0,1F1,1B1,0B0,0REDUCE_GRAD,1REDUCE_GRAD,0STEP,1STEP\n0F1,1F0,1B0,0B1,1REDUCE_GRAD,0REDUCE_"
                "GRAD,0STEP,1STEP") ==
        "RC304: rank 0 waits for 0REDUCE_GRAD on rank 1 before 1REDUCE_GRAD, rank 1 waits for 1REDUCE_GRAD "
        "on rank 0 before "
        "0REDUCE_GRAD, for ever; a STEP comes after the REDUCE_GRAD of every stage, and two ranks that share "
        "stages reduce them in one order");
  CHECK(refusal("0UNSHARD,0F0,0RESHARD,0B0") ==
        "RC310: rank 0 has 0B0, but stage 0 is sharded there; put 0UNSHARD before it");
  CHECK(refusal("0UNSHARD,0F0,0UNSHARD,0B0,0RESHARD") ==
        "RC310: rank 0 has 0UNSHARD, but stage 0 is gathered there; UNSHARD and RESHARD of a stage "
        "alternate, so leave it out");
  CHECK(refusal("0UNSHARD,0F0,0B0") == "RC310: rank 0 leaves stage 0 gathered; put 0RESHARD behind 0B0");
  CHECK(refusal("0F0,OVERLAP(0F1,0UNSHARD),0B0,0B1,0RESHARD") ==
        "RC302: rank 0 overlaps 0UNSHARD; an OVERLAP joins two actions of microbatches");
  action_table forwards = parsed("0F0,0F1");
  forwards.actions.push_back({step, 0, 0});
  ++forwards.begin.back();
  CHECK(refusal(forwards) == "RC302: rank 0 has 0STEP, but the schedule has forwards alone; leave it out");
}

TEST_CASE("gathered weights are those that are used soonest") {
  CHECK(row(gather_weights(parsed("0F0, 1F0, 2F0, 2B0, 1B0, 0B0"), 2), 0) ==
        "0UNSHARD 1UNSHARD 0F0 0RESHARD 2UNSHARD 1F0 2F0 2B0 2RESHARD 0UNSHARD 1B0 1RESHARD 0B0 0RESHARD");
  CHECK(row(gather_weights(parsed("0F0, 1F0, 1B0, 0B0"), 1), 0) ==
        "0UNSHARD 0F0 0RESHARD 1UNSHARD 1F0 1B0 1RESHARD 0UNSHARD 0B0 0RESHARD");
  CHECK(row(gather_weights(parsed("0F0, 1F0, 1B0, 0F1, 1F1, OVERLAP(0B0,1B1), 0B1"), 1), 0) ==
        "0UNSHARD 0F0 0RESHARD 1UNSHARD 1F0 1B0 1RESHARD 0UNSHARD 0F1 0RESHARD 1UNSHARD 1F1 0UNSHARD 0B0 1B1 "
        "1RESHARD 0B1 0RESHARD");
}

TEST_CASE("reductions run beside computation, gathers ahead of it, and a step waits for all of them") {
  const action_table t =
      parsed("0UNSHARD, 0F0, 1F0, 1B0, 1REDUCE_GRAD, 0B0, 0RESHARD, 0REDUCE_GRAD, 0STEP, 1STEP");
  REQUIRE(refusal(t) == "");
  const timing at = time(t, {.gather = 4, .reduce = 5, .step = 0.5});
  CHECK(at.begin == std::vector<double>{0, 4, 5, 6, 8, 8, 10, 13, 18, 18.5});
  CHECK(at.end == std::vector<double>{4, 5, 6, 8, 13, 10, 10, 18, 18.5, 19});
  CHECK(at.makespan == 19);

  const action_table two_ways = complete(collect(schedules::dual_pipe{4}, 2));
  const timing both = time(two_ways, {.reduce = 5});
  for (int s = 0; s < 2; ++s) {
    std::vector<double> begin;
    for (std::size_t i = 0; i < two_ways.actions.size(); ++i)
      if (two_ways.actions[i].kind == reduce_grad && two_ways.actions[i].stage == s)
        begin.push_back(both.begin[i]);
    REQUIRE(begin.size() == 2);
    CHECK(begin[0] == begin[1]);  // both are one collective
  }
}

}  // namespace stage_actions_test
