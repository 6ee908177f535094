// SPDX-License-Identifier: Apache-2.0
// No legal count is refused, and every schedule runs to its end with each.
#include <doctest/doctest.h>

#include <rankc/schedule/check.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "portfolio.hpp"

namespace soundness_test {

using namespace rankc;

namespace {

template <auto Schedule>
constexpr bool sound(int pp) {
  report out;
  check_actions(out, collect(Schedule, pp));
  return out.empty();
}
static_assert(sound<schedules::looped_bfs{.microbatches = 5}>(3));
static_assert(sound<schedules::looped_bfs{.microbatches = 5, .inference = true}>(3));
static_assert(sound<schedules::interleaved_one_f_one_b{.microbatches = 9, .stages_per_rank = 3}>(4),
              "5 and 4");
static_assert(sound<schedules::interleaved_zero_bubble{.microbatches = 3}>(4),
              "fewer microbatches than ranks");
static_assert(sound<schedules::zero_bubble_v{.microbatches = 8}>(4));
static_assert(sound<schedules::dual_pipe_v{.microbatches = 8}>(4));
static_assert(sound<schedules::dual_pipe_v{.microbatches = 3}>(4), "fewer than the published form takes");
static_assert(sound<schedules::dual_pipe{.microbatches = 8}>(4));
static_assert(sound<schedules::dual_pipe{.microbatches = 2}>(6), "fewer than the published form takes");

/// Whether all actions of a table can run, by the definition alone: repeatedly run any action that can.
bool runs(const action_table& t) {
  std::set<std::tuple<char, int, int>> done;
  auto has = [&](char what, int stage, int m) { return done.contains({what, stage, m}); };
  std::vector<int> at(t.begin.begin(), t.begin.end() - 1);
  for (bool moved = true; moved;) {
    moved = false;
    for (int r = 0; r < t.ranks(); ++r)
      for (; at[r] < t.begin[r + 1]; ++at[r], moved = true) {
        const auto [kind, s, m, overlaps] = t.actions[at[r]];
        if (t.rank_of(s, m) != r) return false;
        const bool next_is_back = s == t.stages() - 1 || has('I', s + 1, m);
        if (kind == action_kind::F && s > 0 && !has('F', s - 1, m)) break;
        if ((kind == action_kind::B || kind == action_kind::I) && !(has('F', s, m) && next_is_back)) break;
        if (kind == action_kind::W && !has('I', s, m)) break;
        if (kind == action_kind::F && !done.insert({'F', s, m}).second) return false;
        if ((kind == action_kind::B || kind == action_kind::I) && !done.insert({'I', s, m}).second)
          return false;
        if ((kind == action_kind::B || kind == action_kind::W) && !done.insert({'W', s, m}).second)
          return false;
      }
  }
  return done.size() == static_cast<std::size_t>(t.stages() * t.microbatches * (t.inference ? 1 : 3));
}

/// Whether each action that overlaps the next one is a forward, and the next is a backward of the same rank.
bool overlaps_are_pairs(const action_table& t) {
  for (int r = 0; r < t.ranks(); ++r)
    for (int i = t.begin[r]; i < t.begin[r + 1]; ++i) {
      if (!t.actions[i].overlaps_next) continue;
      if (t.actions[i].kind != action_kind::F || i + 1 == t.begin[r + 1]) return false;
      if (t.actions[i + 1].kind != action_kind::B) return false;
    }
  return true;
}

/// The most activations that any rank holds at once, in microbatches of a stage. A rank holds them from a
/// forward to its last backward.
int most_held(const action_table& t) {
  int most = 0;
  for (int r = 0; r < t.ranks(); ++r)
    for (int i = t.begin[r], held = 0; i < t.begin[r + 1]; ++i) {
      const action_kind k = t.actions[i].kind;
      if (k == action_kind::F) ++held;
      else if (k != action_kind::I) --held;
      most = std::max(most, held);
    }
  return most;
}

std::string said(const schedules::dual_pipe& s, int pp) {
  report out;
  s.check(out, pp);
  std::string all;
  for (const diagnostic& d : out)
    all += "RC" + std::to_string(d.id) + ": " + std::string(d.text.view()) + "\n";
  return all;
}

}  // namespace

TEST_CASE("every schedule runs for any number of ranks, stages and microbatches") {
  for (const known_schedule& schedule : portfolio) {
    int tried = 0;
    for (int pp = 1; pp <= 8; ++pp)
      for (int v = 1; v <= 3; ++v)
        for (int m = 1; m <= 20; ++m)
          for (const bool inference : {false, true}) {
            const std::optional<action_table> t = schedule.collect({pp, v, m, inference});
            if (!t) continue;
            ++tried;
            INFO(schedule.name << " pp=" << pp << " stages_per_rank=" << v << " microbatches=" << m
                               << " inference=" << inference);
            CHECK(runs(*t));
            CHECK(overlaps_are_pairs(*t));
            report out;
            check_actions(out, *t);
            CHECK(out.empty());
          }
    INFO(schedule.name);
    const bool stages_are_free = schedule.name.starts_with("interleaved") || schedule.name == "looped_bfs";
    const bool infers = schedule.name == "looped_bfs" || schedule.name.starts_with("dual_pipe");
    // dual_pipe takes even numbers alone, of ranks and of microbatches.
    const int counts = schedule.name == "dual_pipe" ? 4 * 10 : 8 * 20;
    CHECK(tried == counts * (stages_are_free ? 3 : 1) * (infers ? 2 : 1));
  }
}

TEST_CASE("the activations held are those that the schedules say") {
  for (int pp = 2; pp <= 8; pp += 2) {
    const int m = 4 * pp;
    CHECK(most_held(collect(schedules::zero_bubble_v{m}, pp)) == 2 * pp);
    CHECK(most_held(collect(schedules::dual_pipe_v{m}, pp)) == 2 * pp + 1);
    CHECK(most_held(collect(schedules::dual_pipe{m}, pp)) == pp + 1);
    for (int v = 1; v <= 3; ++v) {
      CHECK(most_held(collect(schedules::looped_bfs{m, v}, pp)) == v * m);
      CHECK(most_held(collect(schedules::interleaved_one_f_one_b{m, v}, pp)) == v * pp + pp - 1);
      CHECK(most_held(collect(schedules::interleaved_zero_bubble{m, v}, pp)) == v * pp);
    }
  }
}

TEST_CASE("rounds that are not equal differ by one, the longer first") {
  const action_table t = collect(schedules::interleaved_one_f_one_b{.microbatches = 9}, 4);
  std::string forwards;
  for (int i = t.begin[0]; i < t.begin[1]; ++i)
    if (t.actions[i].kind == action_kind::F)
      forwards += std::string((sentence{} << "" << t.actions[i]).view()) + " ";
  CHECK(forwards == "0F0 0F1 0F2 0F3 0F4 4F0 4F1 4F2 4F3 4F4 0F5 0F6 0F7 0F8 4F5 4F6 4F7 4F8 ");
}

TEST_CASE("dual_pipe says which counts are legal") {
  CHECK(said({.microbatches = 2}, 2).empty());
  const std::string halves = " is odd; dual_pipe sends half of them each way, so take ",
                    mirror = " is odd; dual_pipe pairs each rank with its mirror, so take pp=",
                    any_count = ", or dual_pipe_v, which runs any number\n",
                    any_pp = ", or dual_pipe_v, which runs on any number of ranks\n";
  CHECK(said({.microbatches = 7}, 4) == "RC312: microbatches=7" + halves + "6 or 8" + any_count);
  CHECK(said({.microbatches = 2}, 5) == "RC312: pp=5" + mirror + "4 or 6" + any_pp);
  CHECK(said({.microbatches = 1}, 1) ==
        "RC312: pp=1" + mirror + "2" + any_pp + "RC312: microbatches=1" + halves + "2" + any_count);
}

}  // namespace soundness_test
