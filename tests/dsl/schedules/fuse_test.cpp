// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/schedule/check.hpp>
#include <rankc/schedule/csv.hpp>
#include <rankc/schedule/fuse.hpp>

#include <map>
#include <string>
#include <tuple>

#include "portfolio.hpp"

namespace fuse_test {

using namespace rankc;

namespace {

constexpr bool fuses(std::string_view from, std::string_view to, const costs& c = {}) {
  report out;
  const action_table fused = fuse_backward(parse_csv(out, from), c), expected = parse_csv(out, to);
  return out.empty() && fused.actions == expected.actions && fused.begin == expected.begin;
}
static_assert(fuses("0F0, 0I0, 0W0", "0F0, 0B0"));
static_assert(fuses("0F0, 0F1, 0I0, 0I1, 0W0, 0W1", "0F0, 0F1, 0I0, 0I1, 0W0, 0W1"), "another's W");
static_assert(fuses("0F0, 1F0, 1I0, 0I0, 0W0, 1W0", "0F0, 1F0, 1I0, 0B0, 1W0"), "another stage's W");
static_assert(fuses("0F0, 0F1, OVERLAP(0F2,0I0), 0W0, 0B1, 0B2", "0F0, 0F1, OVERLAP(0F2,0I0), 0W0, 0B1, 0B2"),
              "the other half would end later");
static_assert(fuses("0F0, 0B0 \n 1F0, 1I0, 1W0", "0F0, 0B0 \n 1F0, 1I0, 1W0"), "rank 0 waits for 1I0");
static_assert(
    fuses("0F0, 0F1, 0F2, 0F3, 0B0, 0B1, 0B2, 0B3 \n 1F0, 1I0, 1W0, 1F1, 1I1, 1W1, 1F2, 1I2, 1W2, 1F3, 1I3, "
          "1W3",
          "0F0, 0F1, 0F2, 0F3, 0B0, 0B1, 0B2, 0B3 \n 1F0, 1B0, 1F1, 1I1, 1W1, 1F2, 1I2, 1W2, 1F3, 1I3, 1W3"),
    "rank 0 has another forward to do before 0B0");
static_assert(fuses("0F0, 0F1, 0F2, 0B0, 0B1, 0B2 \n 1F0, 1I0, 1W0, 1F1, 1B1, 1F2, 1B2",
                    "0F0, 0F1, 0F2, 0B0, 0B1, 0B2 \n 1F0, 1I0, 1W0, 1F1, 1B1, 1F2, 1B2", {.send = 0.5}),
              "the message would come too late");

/// Check a fused table by the definition: nothing begins later, and each pair that stays split has a waiter.
/// Returns: the number of fused pairs, and of pairs that stay split.
std::pair<int, int> check_fused(const action_table& split, const costs& c) {
  int fused_pairs = 0, split_pairs = 0;
  const action_table fused = fuse_backward(split, c);
  const timing before = time(split, c), after = time(fused, c);
  CHECK(after.makespan == doctest::Approx(before.makespan));
  std::map<std::tuple<action_kind, int, int>, double> begin;
  for (std::size_t i = 0; i < split.actions.size(); ++i) {
    const action& a = split.actions[i];
    begin[{a.kind, a.stage, a.microbatch}] = before.begin[i];
  }
  for (int r = 0; r < fused.ranks(); ++r)
    for (int i = fused.begin[r]; i < fused.begin[r + 1]; ++i) {
      const action& a = fused.actions[i];
      const bool was_split = a.kind == action_kind::B && !begin.contains({a.kind, a.stage, a.microbatch});
      fused_pairs += was_split;
      CHECK(after.begin[i] ==
            doctest::Approx(begin.at({was_split ? action_kind::I : a.kind, a.stage, a.microbatch})));
      if (a.kind != action_kind::I || i + 1 == fused.begin[r + 1]) continue;
      if (fused.actions[i + 1] != action{action_kind::W, a.stage, a.microbatch}) continue;
      REQUIRE(a.stage > 0);
      ++split_pairs;
      const bool is_split = begin.contains({action_kind::I, a.stage - 1, a.microbatch});
      const double used = begin.at({is_split ? action_kind::I : action_kind::B, a.stage - 1, a.microbatch});
      CHECK(used < after.end[i + 1] + c.send);
    }
  report out;
  check_actions(out, fused);
  CHECK(out.empty());
  CHECK(fuse_backward(fused, c).actions == fused.actions);
  return {fused_pairs, split_pairs};
}

}  // namespace

TEST_CASE("a fused schedule takes no longer, and only what somebody waits for stays split") {
  std::pair<int, int> pairs;
  int tables = 0;
  for (const known_schedule& s : portfolio)
    for (const asked& a : {asked{1, 2, 3}, asked{2, 2, 5}, asked{3, 2, 7}, asked{4, 2, 8}, asked{4, 1, 8},
                           asked{4, 3, 12}, asked{6, 2, 4}, asked{8, 2, 32}})
      for (const costs& c : {costs{}, costs{.input_grad = 1.25, .weight_grad = 0.75, .send = 0.25},
                             costs{.forward = 2, .send = 1, .overlap = 0.75}})
        if (const auto t = s.collect(a)) {
          CAPTURE(std::string(s.name));
          CAPTURE(a.pp);
          const auto [fused, stay_split] = check_fused(*t, c);
          pairs = {pairs.first + fused, pairs.second + stay_split};
          ++tables;
        }
  CHECK(tables == 123);
  CHECK(pairs.first > 500);
  CHECK(pairs.second > 500);
}

TEST_CASE("ZBV keeps its makespan, where fusing all would cost 7 %") {
  const action_table split = collect(schedules::zero_bubble_v{32}, 8), fused = fuse_backward(split);
  CHECK(total(fused).makespan == 199);
  CHECK(total(split).makespan == 199);
  CHECK(fused.actions.size() < split.actions.size());
}

}  // namespace fuse_test
