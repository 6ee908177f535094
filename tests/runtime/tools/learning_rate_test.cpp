// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/tools/learning_rate.hpp>

#include "scratch.hpp"

#include <doctest/doctest.h>

using namespace rankc::runtime;

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
  CHECK(set("cosine:20", flat).decay_steps == 80);  // ends with the last step
  CHECK(learning_rate(set("cosine:20", flat), 100) == doctest::Approx(0.2).epsilon(1e-15));
}

TEST_CASE("what is no schedule is refused with the legal forms") {
  const auto refused = [](const char* text) {
    const std::string legal = "; legal are constant and cosine[:WARMUP[:DECAY_STEPS[:MIN_LR]]]";
    std::string refusal = refusal_of([&] {
      recipe r = plan;
      set_schedule(r, text, 100);
    });
    REQUIRE(refusal.ends_with(legal));
    refusal.resize(refusal.size() - legal.size());
    return refusal;
  };
  CHECK(refused("linear") == "2: --lr-schedule linear: is not a schedule");
  CHECK(refused("") == "2: --lr-schedule : is not a schedule");
  CHECK(refused("constant:3") == "2: --lr-schedule constant:3: is not a schedule");
  CHECK(refused("cosine:1:2:0.1:5") == "2: --lr-schedule cosine:1:2:0.1:5: is not a schedule");
  CHECK(refused("cosine:") == "2: --lr-schedule cosine:: WARMUP is '', but must be a whole number >= 0");
  CHECK(refused("cosine:-1") ==
        "2: --lr-schedule cosine:-1: WARMUP is '-1', but must be a whole number >= 0");
  CHECK(refused("cosine:1:0") ==
        "2: --lr-schedule cosine:1:0: DECAY_STEPS is '0', but must be a whole number >= 1");
  CHECK(refused("cosine:1:5:2") ==
        "2: --lr-schedule cosine:1:5:2: MIN_LR is '2', but must lie between 0 and the learning rate 1");
  CHECK(refused("cosine:1:5:nan").find("MIN_LR is 'nan'") != std::string::npos);
}
