// SPDX-License-Identifier: Apache-2.0
// The orders equal those of the published implementations, action for action. oracles/schedules/orders.txt
// has the recorded orders of d9d, PyTorch, DeepSeek's DualPipe and Sea AI Lab's zero-bubble code, each
// program once, with its sources.
#include <doctest/doctest.h>

#include <rankc/schedule/check.hpp>
#include <rankc/schedule/csv.hpp>
#include <rankc/schedules/portfolio.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>

#include "portfolio.hpp"

namespace published_test {

using namespace rankc;

namespace {

/// A program as published.
struct published {
  std::string heading, schedule, csv;
  std::vector<std::string> sources;
  asked of;
};

/// The published programs: a line such as "dual_pipe inference pp=2 stages_per_rank=2 microbatches=4:
/// deepseek/DualPipe_inference", and a line for each rank.
std::vector<published> read_orders() {
  std::ifstream file(RANKC_ORACLES "/orders.txt");
  std::vector<published> all;
  for (std::string line; std::getline(file, line);) {
    published p{.heading = line, .schedule = {}, .csv = {}, .sources = {}, .of = {}};
    std::istringstream words(line);
    words >> p.schedule;
    bool counts = true;
    for (std::string word; words >> word;) {
      if (!counts) p.sources.push_back(word);
      else if (word == "inference") p.of.inference = true;
      else if (word.starts_with("pp=")) p.of.pp = std::stoi(word.substr(3));
      else if (word.starts_with("stages_per_rank=")) p.of.stages_per_rank = std::stoi(word.substr(16));
      else if (word.starts_with("microbatches=")) p.of.microbatches = std::stoi(word.substr(13));
      if (word.ends_with(':')) counts = false;
    }
    for (int r = 0; r < p.of.pp && std::getline(file, line); ++r) p.csv += line + "\n";
    all.push_back(p);
  }
  return all;
}

/// Published programs that are wrong, which rankc does not reproduce.
struct exception {
  std::string_view source;
  int microbatches;  // 0: any
  int programs;
  std::string_view reason;
};
constexpr exception exceptions[]{
    {"torch/1F1B/pipeline_order", 0, 34,
     "the last rank's forwards begin at microbatch 1, and end behind the last"},
    {"sail/VPP3", 1, 4, "with one microbatch a third of the stages is left out"},
};

const exception* find_exception(const std::string& source, const asked& of) {
  const auto found = std::find_if(std::begin(exceptions), std::end(exceptions), [&](const exception& e) {
    return e.source == source && (e.microbatches == 0 || e.microbatches == of.microbatches);
  });
  return found == std::end(exceptions) ? nullptr : found;
}

/// Whether a call is a constant expression.
template <class Call, int = (Call{}(), 0)>
constexpr bool is_constant(Call) {
  return true;
}
constexpr bool is_constant(...) { return false; }

bool same(const action_table& a, const action_table& b) {
  const auto fields = [](const action_table& t) {
    return std::tie(t.actions, t.begin, t.rank_of_stage, t.microbatches, t.inference,
                    t.reversed_rank_of_stage, t.reversed_from);
  };
  return fields(a) == fields(b);
}

}  // namespace

TEST_CASE("a name that no published schedule has is refused") {
  constexpr auto known_stages = [] { return schedules::listed{.name = "dual_pipe_v"}.stages(2); };
  constexpr auto unknown_stages = [] { return schedules::listed{.name = "dual_pipe_w"}.stages(2); };
  static_assert(is_constant(known_stages) && !is_constant(unknown_stages));
  CHECK(known_stages() == 4);
  CHECK_THROWS_WITH_AS(
      unknown_stages(),
      "no published schedule has the name 'dual_pipe_w'; the names are gpipe, one_f_one_b, looped_bfs, "
      "interleaved_one_f_one_b, group_interleaved, interleaved_zero_bubble, zero_bubble_1p, zero_bubble_2p, "
      "zero_bubble_v, zero_bubble_v_greedy, v_half, v_min, one_f_one_b_v, dual_pipe and dual_pipe_v",
      std::invalid_argument);
}

TEST_CASE("every order is as published") {
  std::map<std::string, int> equal;
  std::map<const exception*, int> excepted;
  for (const published& p : read_orders()) {
    INFO(p.heading);
    const auto schedule = std::find_if(std::begin(portfolio), std::end(portfolio),
                                       [&](const known_schedule& s) { return s.name == p.schedule; });
    REQUIRE(schedule != std::end(portfolio));
    const std::optional<action_table> ours = schedule->collect(p.of);
    REQUIRE(ours);
    report wrong;
    const action_table theirs = parse_csv(wrong, p.csv);
    for (const std::string& source : p.sources) {
      const exception* e = find_exception(source, p.of);
      ++(e ? excepted[e] : equal[source]);
      CHECK(same(*ours, theirs) == !e);
      if (!e) continue;
      if (wrong.empty()) check_actions(wrong, theirs);
      const bool is_wrong = !wrong.empty() || theirs.stages() < ours->stages();
      CHECK_MESSAGE(is_wrong, e->reason);
    }
    if (!find_exception(p.sources[0], p.of)) CHECK(wrong.empty());
  }
  const std::map<std::string, int> all{
      {"d9d/DualPipeV", 27},
      {"d9d/Interleaved1F1B", 28},
      {"d9d/InterleavedZB1P", 30},
      {"d9d/LoopedBFS", 36},
      {"d9d/LoopedBFS_inference", 36},
      {"d9d/ZeroBubbleV", 36},
      {"deepseek/DualPipe", 10},
      {"deepseek/DualPipe_inference", 13},
      {"deepseek/DualPipeV", 22},
      {"deepseek/DualPipeV_inference", 26},
      {"sail/1F1B", 36},
      {"sail/VPP", 21},
      {"sail/VPP3", 19},
      {"torch/1F1B", 31},
      {"torch/DualPipeV", 10},
      {"torch/GPipe", 36},
      {"torch/Interleaved1F1B", 27},
      {"torch/InterleavedZeroBubble", 27},
      {"torch/LoopedBFS", 36},
      {"torch/ZBVZeroBubble", 11},
  };
  CHECK(equal == all);
  for (const exception& e : exceptions) CHECK_MESSAGE(excepted[&e] == e.programs, e.source);
}

}  // namespace published_test
