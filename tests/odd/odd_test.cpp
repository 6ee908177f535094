// SPDX-License-Identifier: Apache-2.0
// Odd plans in f64: frozen parameters, and losses that count several times.
#include <doctest/doctest.h>

#include <cmath>

#include "run.hpp"

namespace odd_test {

namespace {

using rankc::runtime::region;

/// Whether a parameter is frozen, by its name.
bool is_frozen(const std::string& name) { return name.find("frozen") != name.npos; }

}  // namespace

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
        const bool changed =
            of == region::weights ? values != before.at(name) : largest({{name, values}}) > 0;
        CHECK(changed == !is_frozen(name));  // frozen parameters have weights alone
        CHECK((of == region::weights || !is_frozen(name)));
      }
    ++programs;
  }
  CHECK(programs == expected_of(programs, 11));
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

}  // namespace odd_test
