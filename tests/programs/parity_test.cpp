// SPDX-License-Identifier: Apache-2.0
// In f64 every layout computes the one-rank plan's gradients and weights, element by element: the weights
// after two steps, or after five if RANKC_EVERY_STEP is set.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "../said.hpp"
#include "plans.hpp"
#include "run.hpp"

namespace {

constexpr double bound = 1e-10;

/// The largest relative difference over all elements. A sum of many terms that cancel has the rounding error
/// of its terms, which may be as large as the largest element of all. So an element's scale is at least the
/// one at which four such roundings are `bound`. A weight is a sum of AdamW's steps; its scale is at least a
/// hundredth of one step. The gradient of a key's bias is zero in exact arithmetic, because softmax does not
/// see it. AdamW's steps along its rounding have no scale; their absolute limit is 1e-12.
double difference(const tensors& a, const tensors& b, double step = 0) {
  REQUIRE(a.size() == b.size());
  constexpr double roundings = 4 * std::numeric_limits<double>::epsilon();
  const double floor = std::max(roundings / bound * largest(a), 1e-2 * step);
  double worst = 0;
  for (const auto& [name, values] : a) {
    CAPTURE(name);
    REQUIRE(b.count(name) == 1);
    const auto& others = b.at(name);
    REQUIRE(values.size() == others.size());
    const bool no_scale = name.ends_with("wk.bias");
    for (std::size_t i = 0; i < values.size(); ++i)
      if (no_scale) CHECK(std::abs(values[i] - others[i]) <= 1e-12);
      else
        worst = std::max(worst, std::abs(values[i] - others[i]) /
                                    std::max({std::abs(values[i]), std::abs(others[i]), floor}));
  }
  return worst;
}

bool runs_forwards_alone(const registered& program) { return program.layout.starts_with("forwards_"); }

}  // namespace

TEST_CASE("gradients and weights of every layout equal the one-rank run's to 1e-10") {
  using rankc::runtime::region;
  std::string job;
  tensors gradients, weights;
  constexpr double lr = 1e-3;
  const int steps = std::getenv("RANKC_EVERY_STEP") ? 5 : 2;
  double norm = 0, loss = 0, worst_gradient = 0, worst_weight = 0;
  int compared = 0, alone = 0;
  for (const registered& program : host_registry) {
    if (program.type != "f64" || runs_forwards_alone(program)) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    run r(program, "arith", lr);
    const rankc::runtime::step_output first = r.step();
    const tensors g = r.tensors(region::gradients);
    for (int n = 1; n < steps; ++n) r.step();
    const tensors w = r.tensors(region::weights);
    if (program.layout == "one") {
      job = program.job;
      gradients = g;
      weights = w;
      norm = first.grad_norm;
      loss = first.loss;
      CHECK(largest(g) > 1e-3);
      ++alone;
      continue;
    }
    REQUIRE(job == program.job);
    const double dg = difference(gradients, g), dw = difference(weights, w, lr);
    CHECK(dg <= bound);
    CHECK(dw <= bound);
    CHECK(std::abs(first.grad_norm - norm) <= bound * norm);
    CHECK(std::abs(first.loss - loss) <= 1e-12 * loss);
    worst_gradient = std::max(worst_gradient, dg);
    worst_weight = std::max(worst_weight, dw);
    ++compared;
  }
  const auto pipelines = programs::pipelines();
  const auto trained =
      std::count_if(pipelines.begin(), pipelines.end(), [](const auto& p) { return !p.inference; });
  CHECK(alone == static_cast<int>(std::size(programs::jobs)) + 2);  // plus the two small models
  const int all = programs::count_made("host", "f64") + static_cast<int>(trained);
  CHECK(compared == expected_of(compared, all - alone));
  MESSAGE("largest relative difference: gradients " << worst_gradient << ", weights after " << steps
                                                    << " steps " << worst_weight);
}

TEST_CASE("copies of a tied weight and replicas of every weight stay equal, bit for bit") {
  using rankc::runtime::region;
  int compared = 0, run_programs = 0;
  for (const registered& program : host_registry) {
    const bool doubled =
        program.layout.find("dual_pipe_") != std::string::npos && !runs_forwards_alone(program);
    if (program.type != "f64" || (program.job != "gpt2_4" && !doubled)) continue;
    CAPTURE(program.layout);
    run r(program, "arith", 1e-3);
    for (int n = 0; n < 3; ++n) r.step();
    for (const auto& p : rankc::runtime::global_parameters(r.about)) {
      std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> seen;
      for (const auto& s : p.holders) {
        std::vector<double> values(s.rows * s.columns);
        r.engine->read(s.rank, region::weights, s.element, values.size(), values.data());
        const auto [known, is_new] = seen.try_emplace({s.row, s.column}, values);
        CAPTURE(p.name);
        CAPTURE(s.rank);
        CHECK((is_new || known->second == values));
        compared += !is_new;
      }
    }
    ++run_programs;
  }
  CHECK(run_programs > (host_has_every_program ? programs::count_made("host", "f64", {"gpt2_4"}) : 8));
  CHECK(compared > 100);
}

TEST_CASE("an evaluation leaves weights alone and gives the loss that a step would") {
  using rankc::runtime::region;
  int compared = 0;
  for (const registered& program : host_registry) {
    if (program.type != "f64" || (program.job != "gpt2_4" && program.job != "llama_4")) continue;
    CAPTURE(program.layout);
    run r(program, "arith", 1e-3);
    r.step();
    const tensors before = r.tensors(region::weights);
    r.load();
    const double loss = r.engine->evaluate();
    CHECK(r.tensors(region::weights) == before);
    CHECK(loss == r.step().loss);
    ++compared;
  }
  CHECK(compared == expected_of(compared, programs::count_made("host", "f64", {"gpt2_4", "llama_4"})));
  CHECK(compared >= 10);
}

TEST_CASE("forwards alone give the loss of an evaluation on one rank") {
  double loss = 0;
  int compared = 0;
  for (const registered& program : host_registry) {
    if (program.job != "tiny_gpt2" || (program.layout != "one" && !runs_forwards_alone(program))) continue;
    CAPTURE(program.layout);
    run r(program);
    r.load();
    const double found = r.engine->evaluate();
    if (program.layout == "one") {
      loss = found;
      continue;
    }
    CHECK(std::abs(found - loss) <= 1e-12 * loss);
    CHECK(rankc::test::said_by([&] { r.step(); }) == rankc::test::said{5007, {program.about->name}});
    ++compared;
  }
  CHECK(compared == expected_of(compared, 3));
}
