// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/learning_rate.hpp>

#include "../../exit_with.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <cmath>
#include <numbers>

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with;

namespace {
constexpr recipe plan{.lr = 1,
                      .weight_decay = 0,
                      .clip = 0,
                      .beta1 = 0,
                      .beta2 = 0,
                      .eps = 0,
                      .warmup_steps = 4,
                      .decay_steps = 10,
                      .min_lr = 0.2};
}

TEST_CASE("warm-up, half cosine, floor") {
  CHECK(learning_rate(plan, 1) == 0.25);
  CHECK(learning_rate(plan, 3) == 0.75);
  CHECK(learning_rate(plan, 4) == 1);
  CHECK(learning_rate(plan, 9) == doctest::Approx(0.6).epsilon(1e-15));  // half way
  CHECK(learning_rate(plan, 5) ==
        doctest::Approx(0.2 + 0.8 * 0.97552825814757682).epsilon(1e-15));  // cos(pi/10)
  CHECK(learning_rate(plan, 14) == doctest::Approx(0.2).epsilon(1e-15));
  CHECK(learning_rate(plan, 1000000) == doctest::Approx(0.2).epsilon(1e-15));
}

TEST_CASE("no decay keeps the rate after warm-up") {
  recipe r = plan;
  r.decay_steps = 0;
  CHECK(learning_rate(r, 2) == 0.5);
  CHECK(learning_rate(r, 400) == 1);
}

TEST_CASE("schedules of the command line") {
  const auto set = [](const char* text, recipe r = plan) {
    set_schedule(r, text, 100);
    return r;
  };
  CHECK(set("constant").warmup_steps == 0);
  CHECK(learning_rate(set("constant"), 1) == 1);
  CHECK(set("cosine").decay_steps == 10);
  CHECK(set("cosine:7").warmup_steps == 7);
  const recipe full = set("cosine:0:50:0.125");
  CHECK(full.warmup_steps == 0);
  CHECK(full.decay_steps == 50);
  CHECK(full.min_lr == 0.125);
  recipe flat = plan;
  flat.decay_steps = 0;
  CHECK(set("cosine:20", flat).decay_steps == 80);  // ends at the last step
  CHECK(learning_rate(set("cosine:20", flat), 100) == doctest::Approx(0.2).epsilon(1e-15));
}

TEST_CASE("a schedule that cannot be is refused with the legal forms") {
  const auto refused = [](const char* text) {
    return exit_of([&] {
      recipe r = plan;
      set_schedule(r, text, 100);
    });
  };
  CHECK(refused("linear") == exit_with{2, {6085, {"linear", "linear"}}});
  CHECK(refused("") == exit_with{2, {6085, {"", ""}}});
  CHECK(refused("constant:") == exit_with{2, {6086, {"constant:", "STEPS", "", "1"}}});
  CHECK(refused("cosine:1:2:0.1:5") == exit_with{2, {6085, {"cosine:1:2:0.1:5", "cosine:1:2:0.1:5"}}});
  CHECK(refused("wsd:1:2") == exit_with{2, {6085, {"wsd:1:2", "wsd:1:2"}}});
  CHECK(refused("warmup:5,,constant:3") == exit_with{2, {6085, {"warmup:5,,constant:3", ""}}});
  CHECK(refused("linear:5:x") == exit_with{2, {6087, {"linear:5:x", "LR", "x"}}});
  CHECK(refused("linear:5:inf") == exit_with{2, {6087, {"linear:5:inf", "LR", "inf"}}});
  CHECK(refused("linear:5:2") == exit_with{2, {6089, {"linear:5:2", "2", "1"}}});
  const char* nine = "warmup:1,warmup:1,warmup:1,warmup:1,warmup:1,warmup:1,warmup:1,warmup:1,warmup:1";
  CHECK(refused(nine) == exit_with{2, {6088, {nine, "9", "8"}}});
  CHECK(refused("cosine:") == exit_with{2, {6086, {"cosine:", "WARMUP", "", "0"}}});
  CHECK(refused("cosine:-1") == exit_with{2, {6086, {"cosine:-1", "WARMUP", "-1", "0"}}});
  CHECK(refused("cosine:1:0") == exit_with{2, {6086, {"cosine:1:0", "DECAY_STEPS", "0", "1"}}});
  CHECK(refused("cosine:1:5:2") == exit_with{2, {6089, {"cosine:1:5:2", "2", "1"}}});
  CHECK(refused("cosine:1:5:nan") == exit_with{2, {6087, {"cosine:1:5:nan", "MIN_LR", "nan"}}});
}

namespace {
constexpr lr_schedule wsd = lr::wsd(4, 6, 10, 0.1);
// The compiler computes these; the tests below recompute them at run time.
constexpr double at_compile_time[]{learning_rate(wsd, 0.7, 1),  learning_rate(wsd, 0.7, 4),
                                   learning_rate(wsd, 0.7, 9),  learning_rate(wsd, 0.7, 13),
                                   learning_rate(wsd, 0.7, 20), learning_rate(wsd, 0.7, 99)};
constexpr auto cosines_at_compile_time = [] {
  struct {
    double of[1000];
  } all{};
  for (int i = 0; i < 1000; ++i)
    all.of[i] = learning_rate({lr::warm_up(10), lr::cosine(990, 1e-5)}, 3e-4, i + 1);
  return all;
}();
}  // namespace

TEST_CASE("a rate is the same number at compile time and at run time") {
  recipe r = plan;
  r.lr = 0.7;
  set_schedule(r, "wsd:4:6:10:0.1", 100);
  CHECK(r.schedule == wsd);
  const std::int64_t steps[]{1, 4, 9, 13, 20, 99};
  for (std::size_t i = 0; i < 6; ++i) CHECK(learning_rate(r, steps[i]) == at_compile_time[i]);
  r.lr = 3e-4;
  set_schedule(r, "warmup:10,cosine:990:1e-5", 100);
  for (int i = 0; i < 1000; ++i) CHECK(learning_rate(r, i + 1) == cosines_at_compile_time.of[i]);
  recipe shorthand = r;
  set_schedule(shorthand, "cosine:10:990:1e-5", 100);
  CHECK_FALSE(shorthand.schedule.any());
  for (int i = 0; i < 1100; ++i) CHECK(learning_rate(shorthand, i + 1) == learning_rate(r, i + 1));
}

TEST_CASE("pieces follow each other") {
  constexpr lr_schedule s{lr::warm_up(4), lr::constant(6), lr::linear(10, 0.5), lr::constant(5),
                          lr::cosine(2, 0.1)};
  const auto at = [&](std::int64_t step) { return learning_rate(s, 1.0, step); };
  CHECK(at(1) == 0.25);
  CHECK(at(4) == 1);
  CHECK(at(10) == 1);
  CHECK(at(15) == 0.75);
  CHECK(at(20) == 0.5);
  CHECK(at(24) == 0.5);
  CHECK(at(26) == doctest::Approx(0.3).epsilon(1e-15));
  CHECK(at(27) == 0.1);
  CHECK(at(1'000'000) == 0.1);
  CHECK(learning_rate({lr::linear(10, 0.5)}, 1.0, 5) ==
        0.75);  // the first piece begins at lr unless it is a warm-up
  CHECK(learning_rate({lr::constant(10)}, 1.0, 5) == 1);
  CHECK(learning_rate({}, 1.0, 5) == 1);
  CHECK(s.steps() == 27);
  CHECK(schedule_text(s) == "warmup:4,constant:6,linear:10:0.5,constant:5,cosine:2:0.1");
  CHECK(read_schedule(schedule_text(s)) == s);
  CHECK(read_schedule("") == lr_schedule{});
}

TEST_CASE("the cosine is the library's but for its last bits") {
  double most = 0;
  for (int i = 0; i <= 100000; ++i) {
    const double x = i / 100000.0;
    most = std::max(most, std::abs(cos_of_half_turn(x) - std::cos(std::numbers::pi * x)));
  }
  CHECK(most < 4e-16);
  CHECK(cos_of_half_turn(0) == 1);
  CHECK(cos_of_half_turn(0.5) == doctest::Approx(0).epsilon(1e-16));
  CHECK(cos_of_half_turn(1) == -1);
}
