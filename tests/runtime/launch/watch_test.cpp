// SPDX-License-Identifier: Apache-2.0
// Finds the rank that delays a step, by the ranks' own reports.
#include "../../../runtime/launch/watch.hpp"

#include "../../said.hpp"

#include <doctest/doctest.h>

namespace watch_test {

using namespace rankc::runtime;
using rankc::test::said;
using rankc::test::said_in;
using namespace std::chrono_literals;

namespace {

rank_position at(std::int64_t step, std::uint64_t calls, const char* action) {
  rank_position s;
  s.step = step;
  s.calls = calls;
  s.action = action;
  s.in_step = true;
  s.moved = {static_cast<std::uint64_t>(step), calls};
  return s;
}

rank_position waiting(rank_position s, std::vector<int> with, int communicator = 0,
                      std::uint64_t number = 0) {
  s.waits = true;
  s.awaited = "send \"F0\" (message 1, 8 bytes) on to_next";
  s.with = std::move(with);
  s.communicator = communicator;
  s.number = number;
  s.carried = {{communicator, number}};
  return s;
}

struct job {
  const deadline start = std::chrono::steady_clock::now();
  watch w{limits{.step = 2s}, [](int rank) { return "rank " + std::to_string(rank); }};
  /// The verdict after all ranks have reported the same at 0 s, 1 s, ... 3 s.
  std::string told(const std::vector<rank_position>& all) {
    for (int second = 0; second <= 3; ++second)
      for (std::size_t r = 0; r < all.size(); ++r)
        w.hear(static_cast<int>(r), all[r], start + std::chrono::seconds(second));
    const auto found = w.judge(start + 3s);
    return found ? std::to_string(found->rank) + ": " + found->text : "";
  }
};

}  // namespace

TEST_CASE("the root is who does not wait, and who waits for it is said") {
  const std::string one = job().told({waiting(at(12, 60, "1B3"), {1}), at(12, 57, "0F2")});
  CHECK(one.starts_with("1: RC5354: "));
  CHECK(said_in(one).arguments.front() == "3");
  CHECK(said_in(one).arguments.back().starts_with("RC5353: "));
  CHECK(said_in(one, 5353) == said{5353, {"rank 1", "in step 12 at 0F2, op 57"}});
  CHECK(
      said_in(one, 5351) ==
      said{5351, {"1", "0", "0", "in step 12 at 1B3, op 60", "send \"F0\" (message 1, 8 bytes) on to_next"}});
  const std::string two = job().told({at(1, 1, "a"), at(1, 2, "b"), waiting(at(1, 9, "c"), {0})});
  CHECK(said_in(two, 5353) == said{5353, {"rank 0", "in step 1 at a, op 1"}});
  const std::size_t second = two.find("; and RC");
  REQUIRE(second != two.npos);
  CHECK(said_in(two.substr(second)) == said{5353, {"rank 1", "in step 1 at b, op 2"}});
}

TEST_CASE("where all wait, what was lost is named, else who has got least far") {
  rank_position done = waiting(at(3, 9, "0B1"), {0}, 1);
  done.carried = {{0, 5}, {1, 0}};
  const std::string awaited = "send \"F0\" (message 1, 8 bytes) on to_next";
  const std::string lost = job().told({waiting(at(3, 7, "0F1"), {1}, 0, 4), done});
  CHECK(lost.starts_with("0: RC5354: "));
  CHECK(said_in(lost, 5350) == said{5350, {"rank 0", "in step 3 at 0F1, op 7", awaited, "rank 1"}});
  const std::string least = job().told({waiting(at(3, 9, "x"), {1}), waiting(at(3, 7, "y"), {0})});
  CHECK(least.starts_with("1: RC5354: "));
  CHECK(said_in(least.substr(0, least.find("; RC")), 5352) ==
        said{5352, {"rank 1", "in step 3 at y, op 7", awaited}});
}

TEST_CASE("where ranks wait for each other in a circle, all of them are named") {
  const std::string told = job().told(
      {waiting(at(3, 90, "0B1"), {2}), waiting(at(3, 95, "0B1"), {0}), waiting(at(3, 7, "1STEP"), {0})});
  CHECK(told.starts_with("2: RC5354: "));
  for (const char* rank : {"RC5352: rank 2 is stuck in step 3 at 1STEP, op 7,",
                           "RC5352: rank 0 is stuck in step 3 at 0B1, op 90,"})
    CHECK(told.find(rank) != told.npos);
  CHECK(told.find("RC5352: rank 1 ") == told.npos);
}

TEST_CASE(
    "nobody is blamed between steps, while a rank gets on, while one is silent, or for the coordinator's own "
    "absence") {
  rank_position idle = at(3, 9, "");
  idle.in_step = false;
  CHECK(job().told({idle, idle}) == "");
  CHECK(job().told({idle, waiting(at(4, 1, "x"), {0})}) == "");  // a rank may take long to save
  const std::vector<rank_position> stuck{waiting(at(3, 9, "x"), {1}), at(3, 7, "y")};
  job moving;
  CHECK(moving.told(stuck) != "");
  moving.w.hear(1, at(3, 8, "y"), moving.start + 3s);
  CHECK_FALSE(moving.w.judge(moving.start + 4s));
  job silent;
  CHECK(silent.told(stuck) != "");
  silent.w.hear(0, stuck[0], silent.start + 7s);
  CHECK_FALSE(silent.w.judge(silent.start + 7s));
  job early;
  early.w.expect(2, early.start + 3s);
  CHECK(early.told(stuck) == "");
  job absent;
  CHECK(absent.told(stuck) != "");
  absent.w.excuse(2s);
  CHECK_FALSE(absent.w.judge(absent.start + 3s));
}

TEST_CASE("an install may take as long as an exchange, and does not count as a step") {
  const deadline start = std::chrono::steady_clock::now();
  const auto installing = [](const char* phase) {
    rank_position s = at(0, 0, phase);
    s.moved.push_back(static_cast<std::uint64_t>(phase[0]));
    return s;
  };
  watch w{limits{.exchange = 40s, .step = 2s}, [](int rank) { return "rank " + std::to_string(rank); }};
  const auto hear = [&](rank_position zero, rank_position one, std::chrono::seconds passed) {
    w.hear(0, std::move(zero), start + passed);
    w.hear(1, std::move(one), start + passed);
    return w.judge(start + passed);
  };
  const rank_position waits = waiting(installing("together"), {1});
  CHECK_FALSE(hear(installing("alone"), installing("alone"), 0s));
  CHECK_FALSE(hear(waits, installing("together"), 30s));
  CHECK_FALSE(hear(waits, installing("together"), 69s));
  const auto stuck = hear(waits, installing("together"), 70s);
  REQUIRE(stuck);
  CHECK(stuck->rank == 1);
  CHECK(said_in(stuck->text, 5373).arguments.front() == "40");
  CHECK(said_in(stuck->text, 5353) == said{5353, {"rank 1", "in the install (together)"}});
  CHECK(said_in(stuck->text, 5351).arguments.at(3) == "in the install (together)");

  watch later{limits{}, [](int rank) { return "rank " + std::to_string(rank); }};
  later.hear(0, installing("alone"), start);
  later.hear(0, installing("together"), start + 50s);
  later.hear(0, at(1, 1, "0F0"), start + 51s);
  later.hear(0, at(1, 1, "0F0"), start + 600s);
  CHECK_FALSE(later.judge(start + 600s));  // the first step has the exchanges' limit
  later.hear(0, at(2, 1, "0F0"), start + 601s);
  later.hear(0, at(3, 1, "0F0"), start + 602s);
  later.hear(0, at(3, 1, "0F0"), start + 20'000s);
  CHECK(later.judge(start + 20'000s));
}

TEST_CASE(
    "an op may take 20 times as long as the longest before, 30 s at least, and in the first step as long as "
    "an exchange") {
  const deadline start = std::chrono::steady_clock::now();
  const auto found_after = [&](watch& w, const rank_position& last, deadline then,
                               std::chrono::seconds passed) {
    w.hear(0, last, then + passed);
    return w.judge(then + passed).has_value();
  };
  watch w{limits{}, [](int rank) { return "rank " + std::to_string(rank); }};
  w.hear(0, at(1, 1, "0F0"), start);
  CHECK_FALSE(found_after(w, at(1, 1, "0F0"), start, 599s));
  CHECK(found_after(w, at(1, 1, "0F0"), start, 600s));

  watch slow{limits{}, [](int rank) { return "rank " + std::to_string(rank); }};
  slow.hear(0, at(1, 1, "0F0"), start);
  slow.hear(0, at(1, 2, "0B0"), start + 4s);  // the op before took 4 s
  slow.hear(0, at(2, 1, "0F0"), start + 5s);
  CHECK_FALSE(found_after(slow, at(2, 1, "0F0"), start + 5s, 79s));
  CHECK(found_after(slow, at(2, 1, "0F0"), start + 5s, 80s));

  watch quick{limits{}, [](int rank) { return "rank " + std::to_string(rank); }};
  quick.hear(0, at(1, 1, "0F0"), start);
  rank_position saved = at(1, 9, "");
  saved.in_step = false;
  quick.hear(0, saved, start + 1s);
  quick.hear(0, at(2, 1, "0F0"), start + 50s);  // the time between steps belongs to a save
  CHECK_FALSE(found_after(quick, at(2, 1, "0F0"), start + 50s, 29s));
  CHECK(found_after(quick, at(2, 1, "0F0"), start + 50s, 30s));
}

}  // namespace watch_test
