// SPDX-License-Identifier: Apache-2.0
// Odd plans in f64: on one rank their gradients are those of finite differences; split, those of one rank.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "run.hpp"

namespace {

using rankc::runtime::region;

/// d loss / d element by central differences, of the batch that is loaded.
double finite_difference(run& r, const rankc::runtime::global_parameter& p, std::vector<double>& values,
                         std::size_t i) {
  constexpr double h = 2e-5;
  const double at = values[i];
  const auto loss = [&](double x) {
    values[i] = x;
    rankc::runtime::write(*r.engine, p, region::weights, [&](std::size_t first, std::span<double> out) {
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
    });
    return r.engine->evaluate();
  };
  // Of fourth order.
  const double d = (8 * (loss(at + h) - loss(at - h)) - (loss(at + 2 * h) - loss(at - 2 * h))) / (12 * h);
  loss(at);
  return d;
}

/// Whether a parameter is not trained, by its name.
bool is_frozen(const std::string& name) { return name.find("frozen") != name.npos; }

}  // namespace

TEST_CASE("gradients of odd plans on one rank are those of finite differences") {
  int plans = 0;
  std::size_t elements = 0;
  double worst = 0;
  for (const registered& program : host_registry) {
    if (program.layout != "one") continue;
    CAPTURE(program.job);
    run of_step(program), r(program);
    of_step.step();
    const tensors gradients = of_step.tensors(region::gradients);
    const double scale = largest(gradients);
    CHECK(scale > 1e-4);
    r.load();
    tensors weights = r.tensors(region::weights);
    for (const auto& p : rankc::runtime::global_parameters(r.about)) {
      CAPTURE(p.name);
      if (is_frozen(p.name)) continue;
      const std::vector<double>& expected = gradients.at(p.name);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(i);
        const double error = std::abs(finite_difference(r, p, weights[p.name], i) - expected[i]) / scale;
        CHECK(error <= 1e-8);
        worst = std::max(worst, error);
        ++elements;
      }
    }
    ++plans;
  }
  CHECK(plans == RANKC_ODD_FAMILIES);
  CHECK(elements > 500 * static_cast<std::size_t>(plans));
  MESSAGE(plans << " plans, " << elements << " elements, largest difference " << worst << " of the largest gradient");
}

TEST_CASE("what is frozen stays as it is, and counts in no norm") {
  int programs = 0;
  for (const registered& program : host_registry) {
    if (!program.job.starts_with("frozen")) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    run r(program);
    const tensors before = r.tensors(region::weights);
    const double norm = r.step().grad_norm;
    double squares = 0;
    for (const auto& [name, values] : r.tensors(region::gradients))
      for (double g : values) squares += g * g;
    CHECK(norm == doctest::Approx(std::sqrt(squares)).epsilon(1e-12));
    r.step();
    for (const region of : {region::weights, region::gradients, region::first_moment, region::second_moment})
      for (const auto& [name, values] : r.tensors(of)) {
        CAPTURE(name);
        const bool changed = of == region::weights ? values != before.at(name) : largest({{name, values}}) > 0;
        CHECK(changed == !is_frozen(name));  // of what is frozen there are weights alone
        CHECK((of == region::weights || !is_frozen(name)));
      }
    ++programs;
  }
  CHECK(programs == 11);
}

TEST_CASE("odd plans that are split compute what one rank does") {
  std::map<std::string, tensors> gradients, weights;
  std::map<std::string, rankc::runtime::step_output> first;
  std::set<std::string> split;
  int plans = 0;
  double worst = 0, worst_weight = 0;
  for (const registered& program : host_registry) {
    CAPTURE(program.job);
    CAPTURE(program.layout);
    run r(program, "arith", 1e-3);
    const auto output = r.step();
    const tensors g = r.tensors(region::gradients);
    for (int n = 1; n < 5; ++n) r.step();
    const tensors w = r.tensors(region::weights);
    if (program.layout == "one") {
      gradients[program.job] = g, weights[program.job] = w, first[program.job] = output;
      continue;
    }
    const tensors &one = gradients.at(program.job), &one_w = weights.at(program.job);
    REQUIRE(g.size() == one.size());
    const double floor = 1e-6 * largest(one);
    for (const auto& [name, values] : one) {
      CAPTURE(name);
      REQUIRE(g.count(name) == 1);
      REQUIRE(g.at(name).size() == values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double scale = std::max({std::abs(values[i]), std::abs(g.at(name)[i]), floor});
        const double error = std::abs(values[i] - g.at(name)[i]) / scale;
        CHECK(error <= 1e-10);
        worst = std::max(worst, error);
        // AdamW makes a whole step of a gradient that is nothing but rounding.
        if (std::abs(values[i]) <= 1e-9) continue;
        const double apart = std::abs(one_w.at(name)[i] - w.at(name)[i]);
        CHECK(apart <= 1e-10);
        worst_weight = std::max(worst_weight, apart);
      }
    }
    CHECK(std::abs(output.loss - first[program.job].loss) <= 1e-12 * output.loss);
    CHECK(std::abs(output.grad_norm - first[program.job].grad_norm) <= 1e-10 * output.grad_norm);
    split.insert(program.job);
    ++plans;
  }
  CHECK(split.size() == RANKC_ODD_FAMILIES);
  CHECK(plans == RANKC_ODD_PLANS - RANKC_ODD_FAMILIES);
  MESSAGE(plans << " split plans, largest relative difference of a gradient " << worst << ", of weights after five steps " << worst_weight);
}

TEST_CASE("a loss that counts several times is that many times as large, and so are its gradients") {
  std::map<std::string, std::pair<double, tensors>> found;
  for (const registered& program : host_registry) {
    if (program.layout != "one" || (program.job != "scaled" && program.job != "unscaled")) continue;
    run r(program);
    const double loss = r.step().loss;
    found[program.job] = {loss, r.tensors(region::gradients)};
  }
  REQUIRE(found.size() == 2);
  CHECK(std::abs(found["scaled"].first - 2.5 * found["unscaled"].first) <= 1e-12);
  const double scale = largest(found["scaled"].second);
  std::size_t elements = 0;
  for (const auto& [name, values] : found["unscaled"].second)
    for (std::size_t i = 0; i < values.size(); ++i, ++elements)
      CHECK(std::abs(found["scaled"].second.at(name)[i] - 2.5 * values[i]) <= 1e-12 * scale);
  CHECK(elements > 1000);
}
