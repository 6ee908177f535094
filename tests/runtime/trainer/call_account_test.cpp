// SPDX-License-Identifier: Apache-2.0
// The account of a step's calls, from given times and from a program's run.
#include <rankc/trainer/call_account.hpp>

#include "../../exit_with.hpp"
#include "fake_run.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sstream>

using namespace rankc::runtime;
using doctest::Approx;
using rankc::test::exit_of, rankc::test::exit_with;

namespace {

std::vector<traced> times_of(double multiply_us, int rank = 0) {
  return {{rank, 0, type_text<fake_calls::multiply>(), 10, 10 + multiply_us},
          {rank, 0, type_text<fake_calls::multiply>(), 4010, 4010 + multiply_us},
          {rank, 1, type_text<fake_calls::all_reduce>(), 4500, 8010}};
}

}  // namespace

TEST_CASE("an account is the mean of its steps, of one rank, apart by lanes") {
  const fake_program program(1, 2, 1);
  std::vector<std::vector<traced>> steps{times_of(1000), times_of(3000)};
  for (const traced& other : times_of(100000, 1)) steps[0].push_back(other);
  const call_account a = account_of(program.about, 0, steps);
  CHECK(a.rank == 0);
  CHECK(a.step_ms == Approx(8.0));
  // The gap between the two calls is 3 ms in the first step and 1 ms in the second.
  CHECK(a.idle_ms == Approx(2.0));
  REQUIRE(a.calls.size() == 3);
  CHECK(a.calls[0].ms + a.calls[0].beside == 0);
  CHECK(a.calls[1].ms == Approx(4.0));
  CHECK(a.calls[2].ms == 0);
  CHECK(a.calls[2].beside == Approx(3.51));
  CHECK(account_table(a) ==
        std::vector<std::string>{"                             calls         ms    share  overlapped, ms   "
                                 "TFLOP/s      GB/s  roofline, ms  reached",
                                 "products                         2      4.000   50.0 %               -     "
                                 "0.500       0.5         0.500   12.5 %",
                                 "  multiply                       2      4.000   50.0 %               -     "
                                 "0.500       0.5         0.500   12.5 %",
                                 "communication                    1          -        -           3.510     "
                                 "    -       2.3             -        -",
                                 "  all_reduce                     1          -        -           3.510     "
                                 "    -       2.3             -        -",
                                 "passes over memory               1          -        -               -     "
                                 "    -         -             -        -",
                                 "  add                            1          -        -               -     "
                                 "    -         -             -        -",
                                 "no call                                 2.000   25.0 %"});
  const auto answer = nlohmann::json::parse(account_json(7.5, std::vector{a}));
  CHECK(answer["step_ms"] == 7.5);
  CHECK(answer["ranks"][0]["idle_ms"].get<double>() == Approx(2.0));
  CHECK(
      answer["ranks"][0]["calls"][1] ==
      nlohmann::json::parse(
          R"({"call":"multiply","kind":"products","count":2,"ms":4.0,"beside_ms":0.0,"awaited_ms":0.0,"operations":2e9,"bytes":2e6,"least_ms":0.5})"));
}

TEST_CASE("calls on two lanes at once leave no time between them") {
  const fake_program program(1, 1, 1);
  const auto of = [](double begin, double end) {
    return traced{0, 0, type_text<fake_calls::multiply>(), begin, end};
  };
  const std::vector<std::vector<traced>> steps{{of(0, 4000), of(1000, 2000), of(3000, 6000), of(7000, 8000)}};
  const call_account a = account_of(program.about, 0, steps);
  CHECK(a.calls[1].ms == Approx(9.0));
  CHECK(a.idle_ms == Approx(1.0));
}

TEST_CASE("where nothing computes it is said which call of another lane ends last before something does") {
  const fake_program program(1, 2, 1);
  const auto on = [](int lane, double begin, double end) {
    return traced{0, lane,
                  lane == 0 ? type_text<fake_calls::multiply>() : type_text<fake_calls::all_reduce>(), begin,
                  end};
  };
  // The compute lane is idle in [1000, 1400], where calls on the other lane end at 1100 and 1300, in [2000,
  // 2500], where one call continues, and in [3000, 3200].
  const std::vector<std::vector<traced>> steps{{on(0, 0, 1000), on(1, 0, 1100), on(1, 1100, 1300),
                                                on(0, 1400, 2000), on(1, 1400, 2700), on(0, 2500, 3000),
                                                on(0, 3200, 4000)}};
  const call_account a = account_of(program.about, 0, steps);
  CHECK(a.idle_ms == Approx(1.1));
  CHECK(a.calls[2].awaited == Approx(0.3));
  const std::vector<std::string> table = account_table(a);
  CHECK(table[table.size() - 2] == "no call                                 1.100   27.5 %");
  CHECK(table.back() == "  until all_reduce ends                 0.300    7.5 %");
}

TEST_CASE("a call that the program does not list is refused") {
  struct other {};
  const fake_program program(1, 1, 1);
  const std::vector<std::vector<traced>> steps{{{0, 0, type_text<other>(), 0, 1}}};
  CHECK(exit_of([&] { account_of(program.about, 0, steps); }) == exit_with{70, {6010, {"0", "other"}}});
}

TEST_CASE("describe --measured takes steps and accounts for the first rank of each stage") {
  const fake_program program(2, 2, 1);
  const outcome text = run(program, {"describe", "--measured"}),
                json = run(program, {"describe", "--measured", "--json", "--data", "rand:3"});
  CHECK_MESSAGE(text.code == 0, text.err);
  CHECK(text.installs == 1);
  CHECK(text.out.starts_with("measured: 10 steps of "));
  CHECK(text.out.find("\nrank 0: 4.000 ms from its first call to its last one\n") != text.out.npos);
  CHECK(text.out.find("\nrank 1: ") == text.out.npos);
  CHECK(text.out.find("\nrank 2: 4.000 ms ") != text.out.npos);
  CHECK_MESSAGE(json.code == 0, json.err);
  const auto answer = nlohmann::json::parse(json.out);
  REQUIRE(answer["ranks"].size() == 2);
  CHECK(answer["ranks"][1]["rank"] == 2);
  CHECK(answer["ranks"][1]["calls"][1]["ms"].get<double>() == Approx(2.0));
  CHECK(answer["step_ms"].get<double>() > 0);
}
