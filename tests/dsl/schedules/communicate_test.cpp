// SPDX-License-Identifier: Apache-2.0
// Programs with messages, run by a model of NCCL: a transfer needs both ends issued, and the earlier
// transfers of its directed pair of ranks finished. The model does not know how the messages were placed.
#include <doctest/doctest.h>

#include <rankc/schedule/check.hpp>
#include <rankc/schedule/communicate.hpp>

#include <algorithm>
#include <deque>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "portfolio.hpp"

namespace communicate_test {

using namespace rankc;

namespace {

/// One step of a rank: an action (the first of an OVERLAP), or its side of a message.
struct step {
  enum { compute, send, receive } kind;
  int action;
  const message* what;
};

std::vector<std::vector<step>> program_of(const action_table& t, const communication& c) {
  std::vector<std::vector<step>> out(static_cast<std::size_t>(t.ranks()));
  for (int r = 0; r < t.ranks(); ++r)
    each_step(
        t, c, r, [&](const message& x) { out[r].push_back({step::receive, x.consumer, &x}); },
        [&](int i) { out[r].push_back({step::compute, i, nullptr}); },
        [&](const message& x) { out[r].push_back({step::send, x.producer, &x}); });
  return out;
}

/// The makespan; negative if something waits forever or a message arrives at the wrong receive.
double run(const action_table& t, const std::vector<std::vector<step>>& program, const costs& c) {
  struct end {
    const message* what;
    double issued;
  };
  std::map<std::pair<int, int>, std::deque<end>> sends, receives;  // by directed pair, not yet matched
  std::map<std::pair<int, int>, double> queue_free;
  std::map<const message*, double> arrived;
  std::map<int, std::vector<const message*>> needs;
  for (const auto& rank : program)
    for (const step& s : rank)
      if (s.kind == step::receive) needs[s.action].push_back(s.what);
  std::vector<std::size_t> at(program.size(), 0);
  std::vector<double> free_at(program.size(), 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < program.size(); ++r)
      for (; at[r] < program[r].size(); ++at[r], moved = true) {
        const step& s = program[r][at[r]];
        if (s.kind != step::compute) {
          (s.kind == step::send ? sends : receives)[{s.what->from, s.what->to}].push_back(
              {s.what, free_at[r]});
          continue;
        }
        double begin = free_at[r], took = 0;
        const int n = t.actions[s.action].overlaps_next ? 2 : 1;
        bool all_here = true;
        for (int i = s.action; i < s.action + n; ++i) {
          took += c.of(t.actions[i]);
          for (const message* x : needs[i]) {
            all_here &= arrived.contains(x);
            if (all_here) begin = std::max(begin, arrived[x]);
          }
        }
        if (!all_here) break;
        free_at[r] = begin + (n == 2 ? c.overlap : 1) * took;
      }
    for (auto& [edge, queue] : sends)
      for (auto& other = receives[edge]; !queue.empty() && !other.empty();
           queue.pop_front(), other.pop_front(), moved = true) {
        if (queue.front().what != other.front().what) return -1;
        double& free = queue_free[edge];
        free = std::max({free, queue.front().issued, other.front().issued}) + c.send;
        arrived[queue.front().what] = free;
      }
  }
  for (std::size_t r = 0; r < program.size(); ++r)
    if (at[r] < program[r].size()) return -1;
  for (const auto* ends : {&sends, &receives})
    for (const auto& [edge, queue] : *ends)
      if (!queue.empty()) return -1;
  return *std::max_element(free_at.begin(), free_at.end());
}

/// Whether no two messages ever share a buffer of a rank at one time.
bool slots_are_apart(const action_table& t, const communication& c) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> uses;  // by rank and slot
  for (const message& x : c.messages) {
    const action& user = t.actions[x.consumer];
    double read_until = c.when.end[x.consumer];
    for (std::size_t i = 0; i < t.actions.size() && !t.inference; ++i)
      if (t.actions[i].stage == user.stage && t.actions[i].microbatch == user.microbatch)
        read_until = std::max(read_until, c.when.end[i]);
    const double posted = x.posted == t.begin[x.to] ? 0 : c.when.end[x.posted - 1];
    uses[{x.to, x.receive_slot}].push_back({posted, read_until});
    uses[{x.from, x.send_slot}].push_back({c.when.begin[x.producer], x.end});
  }
  for (auto& [slot, all] : uses) {
    if (slot.second < 0 || slot.second >= c.slots[slot.first]) return false;
    std::sort(all.begin(), all.end());
    for (std::size_t i = 1; i < all.size(); ++i)
      if (all[i].first < all[i - 1].second) return false;
  }
  return true;
}

constexpr int most_slots(const auto& schedule) {
  const communication c = communicate(collect(schedule, 8), {.send = 0.05});
  return *std::max_element(c.slots.begin(), c.slots.end());
}

}  // namespace

TEST_CASE(
    "every program runs, takes the time predicted, and loses at most 2 % to messages that wait for "
    "messages") {
  int programs = 0;
  for (const known_schedule& s : portfolio)
    for (int pp = 1; pp <= 8; ++pp)
      for (int per_rank = 1; per_rank <= 3; ++per_rank)
        for (int m : {1, 2, 3, 7, 8, 12})
          for (const bool inference : {false, true})
            for (const double send : {0.0, 0.05, 0.5}) {
              const auto t = s.collect({pp, per_rank, m, inference});
              if (!t) continue;
              CAPTURE(std::string(s.name));
              CAPTURE(pp);
              CAPTURE(m);
              const costs c{.input_grad = 1.25, .weight_grad = 0.75, .send = send, .overlap = 0.75};
              const communication placed = communicate(*t, c);
              CHECK(run(*t, program_of(*t, placed), c) == doctest::Approx(placed.when.makespan));
              if (send < 0.1) CHECK(placed.when.makespan <= 1.02 * total(*t, c).makespan);
              CHECK(slots_are_apart(*t, placed));
              ++programs;
            }
  CHECK(programs == 2520);
}

TEST_CASE("a program runs to its end whatever its actions and messages really take") {
  int runs = 0;
  for (const known_schedule& s : portfolio)
    for (int pp : {2, 5}) {
      const auto t = s.collect({pp, s.name == "gpipe" || s.name == "one_f_one_b" ? 1 : 2, 6, false});
      if (!t) continue;  // DualPipe has no table for 5 ranks
      const auto program = communicate(*t, {.send = 0.05});
      for (const costs& real : {costs{.forward = 9, .send = 3}, costs{.forward = 0, .input_grad = 7},
                                costs{.weight_grad = 5, .send = 40}})
        runs += run(*t, program_of(*t, program), real) >= 0;
    }
  CHECK(runs == 3 * (2 * static_cast<int>(std::size(portfolio)) - 1));
}

TEST_CASE("messages that are out of order, or lack an end, are seen by the model") {
  const action_table t = collect(schedules::interleaved_one_f_one_b{4}, 2);
  auto program = program_of(t, communicate(t));
  std::vector<step*> received;
  for (step& s : program[1])
    if (s.kind == step::receive) received.push_back(&s);
  REQUIRE(received.size() > 2);
  std::swap(*received[0], *received[1]);
  CHECK(run(t, program, {}) < 0);
  std::swap(*received[0], *received[1]);
  CHECK(run(t, program, {}) >= 0);
  program[1].erase(program[1].begin() + (received[0] - program[1].data()));
  CHECK(run(t, program, {}) < 0);
}

TEST_CASE("the makespans are those of the reference simulator") {
  std::ifstream in(RANKC_ORACLES "/times.txt");
  std::string line;
  int rows = 0;
  for (std::getline(in, line); std::getline(in, line); ++rows) {
    CAPTURE(line);
    std::istringstream words(line);
    std::string name;
    asked a;
    costs c;
    double alone, with_messages;
    words >> name >> a.pp >> a.stages_per_rank >> a.microbatches >> a.inference >> c.input_grad >>
        c.weight_grad >> c.send >> c.overlap >> alone >> with_messages;
    REQUIRE(!words.fail());
    const auto s = std::find_if(std::begin(portfolio), std::end(portfolio),
                                [&](const auto& k) { return k.name == name; });
    const auto t = s->collect(a);
    REQUIRE(t);
    CHECK(total(*t, c).makespan == doctest::Approx(alone));
    CHECK(communicate(*t, c).when.makespan == doctest::Approx(with_messages));
  }
  CHECK(rows == 240);
}

TEST_CASE("buffers are as few as are ever in use at once, where one for each message would be 256") {
  CHECK(most_slots(schedules::interleaved_one_f_one_b{32}) == 26);
  CHECK(most_slots(schedules::interleaved_zero_bubble{32}) == 26);
  CHECK(most_slots(schedules::zero_bubble_v{32}) == 29);
  CHECK(most_slots(schedules::dual_pipe_v{32}) == 24);
  CHECK(most_slots(schedules::one_f_one_b{32}) == 11);
}

}  // namespace communicate_test
