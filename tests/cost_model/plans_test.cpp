// SPDX-License-Identifier: Apache-2.0
// The cost model has a time for plans of all techniques.
#include <doctest/doctest.h>

#include <rankc/cost_model/calibrations.hpp>
#include <rankc/cost_model/step_time.hpp>

#include <cmath>

#include "experts/plans.hpp"
#include "independent/plans.hpp"
#include "sequences/plans.hpp"

using namespace rankc;

namespace {
void check_time(const plan_data& p) {
  const cost_model::step_prediction s = cost_model::predict_step(p, cost_model::h200);
  INFO(p.name);
  for (const double term : {s.products, s.attention, s.passes, s.links, s.bubble, s.limited, s.optimizer}) {
    CHECK(std::isfinite(term));
    CHECK(term >= 0);
  }
  CHECK(s.products > 0);
  CHECK(s.step > s.sum());
  CHECK((s.links > 0 || p.dims.world == p.dims.pp));
}
}  // namespace

TEST_CASE("plans that share out sequences and experts have a time") {
  int plans = 0;
  for (const auto& p : experts::plans()) {
    check_time(p.plan);
    ++plans;
  }
  for (const auto& p : independent::plans()) {
    check_time(p.plan);
    ++plans;
  }
  for (const auto& p : sequences::plans()) {
    check_time(p.plan);
    ++plans;
  }
  CHECK(plans == 118 + 26 + 72);
}
