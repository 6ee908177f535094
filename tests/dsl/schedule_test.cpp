// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/schedule/check.hpp>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>

namespace schedule_test {

using namespace rankc;

namespace {

struct two_chunks {
  int microbatches = 2;
  static constexpr int stages_per_rank = 2;
  constexpr int rank_of_stage(int stage, int pp) const { return stage < pp ? stage : 2 * pp - 1 - stage; }
  constexpr void actions(int pp, int rank, auto emit) const {
    emit(action{action_kind::F, rank, 1});
    emit(action{action_kind::F, 2 * pp - 1 - rank, 0});
  }
};
constexpr bool collected() {
  const action_table t = collect(two_chunks{}, 3);
  return t.ranks() == 3 && t.stages() == 6 && t.microbatches == 2 &&
         t.begin == std::vector<int>{0, 2, 4, 6} && t.rank_of_stage == std::vector<int>{0, 1, 2, 2, 1, 0} &&
         t.actions[3] == action{action_kind::F, 4, 0};
}
static_assert(collected());

constexpr bool reads_as(action a, std::string_view text) { return (sentence{} << "" << a).view() == text; }
static_assert(reads_as({action_kind::F, 2, 0}, "2F0") && reads_as({action_kind::B, 0, 11}, "0B11"));
static_assert(reads_as({action_kind::I, 1, 3}, "1I3") && reads_as({action_kind::W, 10, 3}, "10W3"));

int refusal(const action_table& t) {
  report out;
  check_actions(out, t);
  REQUIRE(out.size() <= 1);
  return out.empty() ? 0 : out[0].id;
}

/// The same question for the graph of all actions: is there an order in which each follows its predecessors?
bool has_an_order(const action_table& t) {
  std::map<std::tuple<char, int, int>, int> made_by;  // forward, input gradient, weight gradient -> action
  for (int i = 0; i < static_cast<int>(t.actions.size()); ++i) {
    const action a = t.actions[i];
    if (a.kind == action_kind::F) made_by[{'f', a.stage, a.microbatch}] = i;
    if (a.kind == action_kind::B || a.kind == action_kind::I) made_by[{'i', a.stage, a.microbatch}] = i;
  }
  std::vector<std::vector<int>> after(t.actions.size());
  std::vector<int> waits_for(t.actions.size());
  auto edge = [&](int from, int to) {
    after[from].push_back(to);
    ++waits_for[to];
  };
  for (int r = 0; r < t.ranks(); ++r)
    for (int i = t.begin[r]; i < t.begin[r + 1]; ++i) {
      if (i > t.begin[r]) edge(i - 1, i);
      const action_kind kind = t.actions[i].kind;
      const int s = t.actions[i].stage, m = t.actions[i].microbatch;
      if (kind == action_kind::F && s > 0) edge(made_by.at({'f', s - 1, m}), i);
      if (kind == action_kind::W) edge(made_by.at({'i', s, m}), i);
      if (kind == action_kind::B || kind == action_kind::I) {
        edge(made_by.at({'f', s, m}), i);
        if (s + 1 < t.stages()) edge(made_by.at({'i', s + 1, m}), i);
      }
    }
  std::vector<int> ready;
  for (std::size_t i = 0; i < waits_for.size(); ++i)
    if (waits_for[i] == 0) ready.push_back(static_cast<int>(i));
  std::size_t done = 0;
  for (; done < ready.size(); ++done)
    for (int n : after[ready[done]])
      if (--waits_for[n] == 0) ready.push_back(n);
  return done == t.actions.size();
}

}  // namespace

TEST_CASE("a table of all actions is refused exactly where they have no order") {
  std::mt19937 random(7);
  int legal = 0, illegal = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    action_table t;
    t.microbatches = 1 + static_cast<int>(random() % 2);
    const int ranks = 1 + static_cast<int>(random() % 3), chunks = 1 + static_cast<int>(random() % 2);
    for (int s = 0; s < ranks * chunks; ++s) t.rank_of_stage.push_back(s % ranks);
    for (int r = 0; r < ranks; ++r) {
      t.begin.push_back(static_cast<int>(t.actions.size()));
      for (int s = r; s < ranks * chunks; s += ranks)
        for (int m = 0; m < t.microbatches; ++m) {
          t.actions.push_back({action_kind::F, s, m});
          const bool split = random() % 2;
          t.actions.push_back({split ? action_kind::I : action_kind::B, s, m});
          if (split) t.actions.push_back({action_kind::W, s, m});
        }
      // Half are in random order, half sorted by kind with a few neighbours swapped, so that many are legal.
      const auto begin = t.actions.begin() + t.begin.back();
      if (trial % 2) {
        std::shuffle(begin, t.actions.end(), random);
      } else {
        std::stable_sort(begin, t.actions.end(), [&](action a, action b) {
          const auto key = [](action x) {
            if (x.kind == action_kind::F) return std::pair{0, x.stage};
            return std::pair{x.kind == action_kind::W ? 2 : 1, -x.stage};
          };
          return key(a) < key(b);
        });
        for (int swaps = static_cast<int>(random() % 2); swaps > 0; --swaps) {
          const auto at = begin + static_cast<int>(random() % (t.actions.end() - begin - 1));
          std::swap(*at, *(at + 1));
        }
      }
    }
    t.begin.push_back(static_cast<int>(t.actions.size()));
    const bool ok = has_an_order(t);
    ++(ok ? legal : illegal);
    CHECK(refusal(t) == (ok ? 0 : 304));
    if (!ok) continue;
    action_table missing = t;  // without any one action, something waits forever or was never done
    const auto gone = missing.actions.begin() + static_cast<int>(random() % t.actions.size());
    const int at = static_cast<int>(gone - missing.actions.begin());
    missing.actions.erase(gone);
    for (int& b : missing.begin) b -= b > at;
    CHECK((refusal(missing) == 303 || refusal(missing) == 304));
    action_table twice = t;
    twice.actions.insert(twice.actions.begin() + at, t.actions[at]);
    for (int& b : twice.begin) b += b > at;
    CHECK(refusal(twice) == 302);
  }
  CHECK(legal > 2000);
  CHECK(illegal > 2000);
}

TEST_CASE("forwards alone make an inference table") {
  action_table t{.actions = {{action_kind::F, 0, 0}, {action_kind::F, 1, 0}},
                 .begin = {0, 1, 2},
                 .rank_of_stage = {0, 1},
                 .microbatches = 1};
  CHECK(refusal(t) == 303);
  t.inference = true;
  CHECK(refusal(t) == 0);
}

TEST_CASE("an action is of a stage and a microbatch that there are") {
  for (const auto& [stage, microbatch] : {std::pair{-1, 0}, {1, 0}, {0, -1}, {0, 1}}) {
    CAPTURE(stage);
    CAPTURE(microbatch);
    const action_table t{.actions = {{action_kind::F, stage, microbatch}},
                         .begin = {0, 1},
                         .rank_of_stage = {0},
                         .microbatches = 1};
    CHECK(refusal(t) == 302);
  }
}

TEST_CASE("a stage is on a rank that there is") {
  const action_table t{
      .actions = {{action_kind::F, 0, 0}}, .begin = {0, 1}, .rank_of_stage = {1}, .microbatches = 1};
  CHECK(refusal(t) == 302);
}

}  // namespace schedule_test
