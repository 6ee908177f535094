// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/schedule/check.hpp>
#include <rankc/schedules/from_csv.hpp>

#include <string>

#include "portfolio.hpp"

namespace csv_test {

using namespace rankc;

namespace {

std::string said(std::string_view text) {
  report out;
  const action_table t = parse_csv(out, text);
  std::string all;
  for (const diagnostic& d : out) all += (all.empty() ? "" : "\n") + std::string(d.text.view());
  if (!all.empty()) CHECK(t.ranks() == 0);
  return all;
}

action_table parsed(std::string_view text) {
  report out;
  const action_table t = parse_csv(out, text);
  REQUIRE(out.empty());
  return t;
}

using two_ranks = schedules::from_csv<R"(
  0F0, 0F1,    ,    , 0B0,    , 0B1
     , 1F0, 1B0, 1F1,    , 1B1
)">;
static_assert(two_ranks::microbatches == 2 && two_ranks::stages_per_rank == 1);
static_assert(collect(two_ranks{}, 2).actions == collect(schedules::one_f_one_b{2}, 2).actions);

template <class Schedule>
struct schedule_alone {
  constexpr report diagnose() const {
    report out;
    Schedule{}.check(out, 2);
    if (out.empty()) check_actions(out, Schedule{}.table(2));
    return out;
  }
};
template <class Schedule>
inline constexpr schedule_alone<Schedule> check_alone;
static_assert(valid<check_alone<two_ranks>>);
static_assert(!valid<check_alone<schedules::from_csv<"0F0, 0B0">>>, "a line for each rank");
static_assert(!valid<check_alone<schedules::from_csv<"0F0, 0B0 \n 1B0, 1F0">>>, "RC304");
static_assert(!valid<check_alone<schedules::from_csv<"">>>);

}  // namespace

TEST_CASE("overlaps are read as rankc and as PyTorch write them") {
  const action_table t = parsed("0F0, OVERLAP(0F1, 0B0), (0F2;0B1)OVERLAP_F_B, 0B2");
  CHECK(t.actions == std::vector<action>{{action_kind::F, 0, 0},
                                         {action_kind::F, 0, 1, true},
                                         {action_kind::B, 0, 0},
                                         {action_kind::F, 0, 2, true},
                                         {action_kind::B, 0, 1},
                                         {action_kind::B, 0, 2}});
}

TEST_CASE("the placement is that of the forwards") {
  CHECK(parsed("0F0,3F0\n1F0,2F0").rank_of_stage == std::vector<int>{0, 1, 1, 0});
  CHECK(parsed("0F0,2F0\n1F0").rank_of_stage == std::vector<int>{0, 1, 0});
  CHECK(parsed("0F0\n1F0\n2F0").inference);
  CHECK_FALSE(parsed("0F0,0B0\n1F0,1B0").inference);
  CHECK(schedules::from_csv<"0F0,2F0\n1F0">::stages_per_rank == 2);
  CHECK(count_stages(schedules::from_csv<"0F0,2F0\n1F0">{}, 2) == 3);
}

TEST_CASE("two directions are seen where the first and the last stage have changed places") {
  const action_table t = parsed("0F0, 1F1, 1B1, 0B0\n0F1, 1F0, 1B0, 0B1");
  CHECK(t.rank_of_stage == std::vector<int>{0, 1});
  CHECK(t.reversed_rank_of_stage == std::vector<int>{1, 0});
  CHECK(t.reversed_from == 1);
  CHECK_FALSE(parsed("0F0,0F1,0B0,0B1\n1F0,1B0,0F1").bidirectional());
}

TEST_CASE("what every schedule writes is read back") {
  for (const known_schedule& schedule : portfolio)
    for (const asked& of : {asked{2, 1, 4}, asked{4, 2, 6}, asked{4, 2, 6, true}}) {
      const std::optional<action_table> t = schedule.collect(of);
      if (!t) continue;
      sentence s;
      for (int r = 0; r < t->ranks(); ++r) {
        for (int i = t->begin[r]; i < t->begin[r + 1]; ++i) {
          const bool pair = t->actions[i].overlaps_next;
          s << (pair ? "OVERLAP(" : "") << t->actions[i];
          if (pair) s << "," << t->actions[++i] << ")";
          s << ",";
        }
        s << "\n";
      }
      const action_table back = parsed(s.view());
      CHECK(back.actions == t->actions);
      CHECK(back.rank_of_stage == t->rank_of_stage);
      CHECK(back.reversed_rank_of_stage == t->reversed_rank_of_stage);
      CHECK(back.reversed_from == t->reversed_from);
    }
}

TEST_CASE("what cannot be read is named by line and token") {
  const std::string rule =
      " is not an action; write the stage, one of FBIW, and the microbatch, as 0F0, "
      "or two of them as OVERLAP(0F1,2B0), or 0UNSHARD, 0RESHARD, 0REDUCE_GRAD, 0STEP";
  CHECK(said("0F0, 0B0\n1F0, 1X0") == "line 2, token 2: '1X0'" + rule);
  CHECK(said("\n0F0, , OVERLAP(0F1), 0B") ==
        "line 2, token 3: 'OVERLAP(0F1)'" + rule + "\nline 2, token 4: '0B'" + rule);
  for (const std::string bad :
       {"F0", "0F", "-1F0", "0F-1", "0 F0", "0F0 0B0", "0SEND_F0", "0F1234567", ")0F0", "0f0",
        "OVERLAP(0F0,1B0", "OVERLAP(0F0;1B0)", "(0F0;1B0)", "(0F0,1B0)OVERLAP_F_B", "OVERLAP(0F0,1B0,2F0)"})
    CHECK(said(bad) == "line 1, token 1: '" + bad + "'" + rule);
  CHECK(said("") == "the text has no actions; write a line for each rank, as 0F0, 0B0");
  CHECK(said(" , \n") == said(""));
  CHECK(said("0F0,2F0\n2B0,0B0") == "no line has a forward of stage 1, but they go up to 2");
  CHECK(said("0F0,0F7") == "no line has a forward of microbatch 1, but they go up to 7");
  CHECK(said("0F0,99999B0") == "no line has a forward of stage 1, but they go up to 99999");
}

}  // namespace csv_test
