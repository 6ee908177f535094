// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/schedule/check.hpp>
#include <rankc/schedules/gpipe.hpp>
#include <rankc/schedules/one_f_one_b.hpp>

#include <algorithm>
#include <string>

namespace schedules_test {

using namespace rankc;

namespace {

std::string row(const auto& schedule, int pp, int rank) {
  std::string s;
  schedule.actions(
      pp, rank, [&](action a) { s += (s.empty() ? "" : " ") + std::string((sentence{} << "" << a).view()); });
  return s;
}

/// The most microbatches whose activations a rank holds at once.
int most_held(const auto& schedule, int pp, int rank) {
  int held = 0, most = 0;
  schedule.actions(pp, rank, [&](action a) {
    held += a.kind == action_kind::F ? 1 : -1;
    most = std::max(most, held);
  });
  CHECK(held == 0);
  return most;
}

template <class Schedule>
constexpr bool sound(int pp, int microbatches) {
  report out;
  check_actions(out, collect(Schedule{microbatches}, pp));
  return out.empty();
}
static_assert(sound<schedules::gpipe>(4, 8) && sound<schedules::one_f_one_b>(4, 8));
static_assert(sound<schedules::one_f_one_b>(4, 2), "fewer microbatches than ranks");

}  // namespace

TEST_CASE("rows of 1F1B as published") {
  const schedules::one_f_one_b s{.microbatches = 4};
  CHECK(row(s, 3, 0) == "0F0 0F1 0F2 0B0 0F3 0B1 0B2 0B3");
  CHECK(row(s, 3, 1) == "1F0 1F1 1B0 1F2 1B1 1F3 1B2 1B3");
  CHECK(row(s, 3, 2) == "2F0 2B0 2F1 2B1 2F2 2B2 2F3 2B3");
}

TEST_CASE("rows of GPipe as published") {
  CHECK(row(schedules::gpipe{.microbatches = 3}, 2, 1) == "1F0 1F1 1F2 1B0 1B1 1B2");
}

TEST_CASE("any number of ranks and microbatches runs to the end and holds what it says") {
  for (int pp = 1; pp <= 8; ++pp)
    for (int m = 1; m <= 20; ++m) {
      CHECK(sound<schedules::gpipe>(pp, m));
      CHECK(sound<schedules::one_f_one_b>(pp, m));
      for (int rank = 0; rank < pp; ++rank) {
        CHECK(most_held(schedules::gpipe{m}, pp, rank) == m);
        CHECK(most_held(schedules::one_f_one_b{m}, pp, rank) == std::min(m, pp - rank));
      }
    }
}

}  // namespace schedules_test
