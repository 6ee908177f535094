// SPDX-License-Identifier: Apache-2.0
// Every step of every program against the optimizer's formulas, worked out here in f64 from what the engine shows: weights,
// moments and gradients before, weights and moments after.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "run.hpp"

namespace {

using rankc::runtime::region;

/// A parameter before or after a step.
struct element {
  double weight, first, second;
};

/// Of torch.optim.SGD and torch.optim.AdamW, an element at a time, as their documentation has them.
element expected(const rankc::runtime::description& about, element e, double gradient, double norm, bool matrix, double lr, int step) {
  const rankc::runtime::recipe& r = about.train;
  if (r.clip > 0) gradient *= std::min(1.0, r.clip / (norm + 1e-6));
  const double decay = matrix ? r.weight_decay : 0;
  if (about.moments == 2) {
    e.weight -= lr * decay * e.weight;
    e.first = r.beta1 * e.first + (1 - r.beta1) * gradient;
    e.second = r.beta2 * e.second + (1 - r.beta2) * gradient * gradient;
    const double m = e.first / (1 - std::pow(r.beta1, step)), v = e.second / (1 - std::pow(r.beta2, step));
    e.weight -= lr * m / (std::sqrt(v) + r.eps);
    return e;
  }
  double by = gradient + decay * e.weight;
  if (r.momentum != 0) {
    e.first = r.momentum * e.first + by;
    by = r.nesterov ? by + r.momentum * e.first : e.first;
  }
  e.weight -= lr * by;
  return e;
}

/// A moment as it is kept beside what it was worked out to be: in bf16, a neighbour of it, or its nearest.
void check_kept(double kept, double exact, const registered& program) {
  const bool nearest = program.job == "adamw_bf16";
  if (!program.about->bf16_moments) {
    CHECK(std::abs(kept - exact) <= 1e-13 * std::max(1.0, std::abs(exact)));
    return;
  }
  int exponent = 0;
  std::frexp(exact, &exponent);
  exponent = std::max(exponent, -125);  // below it numbers of bf16 are as far apart as there
  const double unit = std::ldexp(1.0, exponent - 8);
  CHECK(std::abs(kept - exact) <= (nearest ? 0.5 : 1.0) * unit * (1 + 1e-6));
  CHECK(kept == std::ldexp(std::round(std::ldexp(kept, 8 - exponent)), exponent - 8));  // bf16 has it
}

struct state {
  tensors weights, first, second;
  explicit state(run& r) : weights(r.tensors(region::weights)) {
    if (r.about.moments > 0) first = r.tensors(region::first_moment);
    if (r.about.moments > 1) second = r.tensors(region::second_moment);
  }
  element at(const std::string& name, std::size_t i) const {
    const auto of = [&](const tensors& t) { return t.empty() ? 0 : t.at(name)[i]; };
    return {weights.at(name)[i], of(first), of(second)};
  }
};

}  // namespace

TEST_CASE("each step is the optimizer's, element by element") {
  std::set<std::string> optimizers;
  std::size_t elements = 0;
  for (const registered& program : host_registry) {
    CAPTURE(program.job);
    CAPTURE(program.layout);
    optimizers.insert(program.job);
    const double lr = 0.01;
    run r(program, "arith", lr);
    for (int step = 1; step <= 3; ++step) {
      const state before(r);
      const double norm = r.step().grad_norm;
      const tensors gradients = r.tensors(region::gradients);
      const state after(r);
      for (const auto& p : rankc::runtime::global_parameters(r.about)) {
        CAPTURE(p.name);
        for (std::size_t i = 0; i < p.count(); ++i, ++elements) {
          const element want = expected(r.about, before.at(p.name, i), gradients.at(p.name)[i], norm, p.matrix, lr, step);
          const element got = after.at(p.name, i);
          CHECK(std::abs(got.weight - want.weight) <= 1e-13 * std::max(1.0, std::abs(want.weight)));
          if (r.about.moments > 0) check_kept(got.first, want.first, program);
          if (r.about.moments > 1) check_kept(got.second, want.second, program);
        }
      }
    }
  }
  CHECK(optimizers.size() == 10);
  CHECK(elements > 1'000'000);
}

TEST_CASE("a moment that the optimizer has not is not there to be read") {
  int refused = 0;
  for (const registered& program : host_registry) {
    if (program.layout != "one" || program.about->moments == 2) continue;
    run r(program);
    CHECK_THROWS_WITH(r.tensors(region::second_moment), doctest::Contains("keeps no second moment"));
    if (program.about->moments == 0) CHECK_THROWS_WITH(r.tensors(region::first_moment), doctest::Contains("keeps no first moment"));
    ++refused;
  }
  CHECK(refused == 5);
}
