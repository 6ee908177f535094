// SPDX-License-Identifier: Apache-2.0
// A family's programs in f64: on one rank their gradients match finite differences. Only some elements of
// large tensors are compared, unless RANKC_EVERY_ELEMENT is set.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>

#include "counts.hpp"
#include "run.hpp"

namespace gradients_test {

namespace {

using rankc::runtime::region;

/// d loss / d element of the loaded batch by central differences: two losses if they give the expected value,
/// else four, which is of fourth order.
double finite_difference(run& r, const rankc::runtime::global_parameter& p, std::vector<double>& values,
                         std::size_t i, const auto& as_expected) {
  constexpr double h = 2e-5;
  const double at = values[i];
  const auto set = [&](double x) {
    values[i] = x;
    rankc::runtime::write(*r.engine, p, region::weights, [&](std::size_t first, std::span<double> out) {
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
    });
  };
  const auto loss = [&](double x) {
    set(x);
    return r.engine->evaluate();
  };
  const auto slope = [&](double by) { return (loss(at + by) - loss(at - by)) / (2 * by); };
  double d = slope(h);
  if (!as_expected(d)) d = (4 * d - slope(2 * h)) / 3;
  set(at);
  return d;
}

/// True if element i of a tensor of `elements` is compared: about 24 of a large tensor, spread over its rows
/// and columns.
bool is_compared(std::size_t i, std::size_t elements) {
  static const bool every = std::getenv("RANKC_EVERY_ELEMENT") != nullptr;
  constexpr std::size_t enough = 24;
  return every || elements <= enough || (i * 2654435761u >> 16) % elements < enough;
}

/// True if the name is one of a frozen parameter.
bool is_frozen(const std::string& name) { return name.find("frozen") != name.npos; }

}  // namespace

TEST_CASE("gradients of plans on one rank are those of finite differences") {
  constexpr double limit = 1e-8;
  int plans = 0;
  std::size_t elements = 0;
  double worst = 0;
  for (const registered& program : host_registry) {
    if (program.layout != "one") continue;
    CAPTURE(program.job);
    run of_step(program), r(program);
    of_step.step();
    const tensors gradients = of_step.tensors(region::gradients);
    const double scale = largest(of_loss(gradients));
    CHECK(scale > 1e-4);
    r.load();
    tensors weights = r.tensors(region::weights);
    for (const auto& p : rankc::runtime::global_parameters(r.about)) {
      CAPTURE(p.name);
      if (is_frozen(p.name) || !is_of_loss(p.name)) continue;
      const std::vector<double>& expected = gradients.at(p.name);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        if (!is_compared(i, expected.size())) continue;
        CAPTURE(i);
        const auto error_of = [&](double d) { return std::abs(d - expected[i]) / scale; };
        const double error = error_of(
            finite_difference(r, p, weights[p.name], i, [&](double d) { return error_of(d) <= limit; }));
        CHECK(error <= limit);
        worst = std::max(worst, error);
        ++elements;
      }
    }
    ++plans;
  }
  CHECK(plans == jobs_of_family);
  CHECK(elements > 200 * static_cast<std::size_t>(plans));
  MESSAGE(plans << " plans, " << elements << " elements, largest difference " << worst
                << " of the largest gradient");
}

}  // namespace gradients_test
