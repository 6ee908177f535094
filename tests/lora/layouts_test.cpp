// SPDX-License-Identifier: Apache-2.0
// Split plans train the weights that one rank does, and frozen weights do not change.
#include <doctest/doctest.h>

#include <set>

#include "weights.hpp"

namespace layouts_test {

namespace {

using rankc::runtime::region;

struct result {
  double loss = 0, norm = 0;
  tensors gradients, weights;
};
result train(const registered& program) {
  run r(program, "arith", 1e-3);
  draw_parts(r);
  const auto first = r.step();
  result out{first.loss, first.grad_norm, r.tensors(region::gradients), {}};
  for (int n = 1; n < 5; ++n) r.step();
  out.weights = r.tensors(region::weights);
  return out;
}

}  // namespace

TEST_CASE("parameters after five steps are those of one rank, on every layout") {
  std::map<std::string, result> one;
  std::set<std::string> jobs;
  int split = 0;
  double worst = 0;
  for (const registered& program : host_registry) {
    if (program.job.ends_with("_dense")) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    const result found = train(program);
    if (program.layout == "one") {
      one[program.job] = found;
      continue;
    }
    const result& expected = one.at(program.job);
    CHECK(std::abs(found.loss - expected.loss) <= 1e-12);
    CHECK(std::abs(found.norm - expected.norm) <= 1e-10 * expected.norm);
    REQUIRE(found.weights.size() == expected.weights.size());
    REQUIRE(found.gradients.size() == expected.gradients.size());
    const double scale = largest(expected.gradients);
    for (const auto& [name, values] : expected.gradients)
      for (std::size_t i = 0; i < values.size(); ++i)
        CHECK(std::abs(found.gradients.at(name)[i] - values[i]) <= 1e-12 * scale);
    for (const auto& [name, values] : expected.weights) {
      CAPTURE(name);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double error = std::abs(found.weights.at(name)[i] - values[i]);
        CHECK(error <= 1e-10);
        worst = std::max(worst, error);
      }
    }
    jobs.insert(program.job);
    ++split;
  }
  CHECK(jobs.size() == 5);
  CHECK(split == 5 * 10 + 9);
  MESSAGE(split << " split plans, largest difference of a weight " << worst);
}

TEST_CASE("what is frozen stays as it is, and everything else moves and counts in the norm") {
  std::size_t frozen = 0, trained = 0;
  for (const registered& program : host_registry) {
    CAPTURE(program.job);
    CAPTURE(program.layout);
    run r(program, "arith", 1e-3);
    draw_parts(r);
    const tensors before = r.tensors(region::weights);
    const double norm = r.step().grad_norm;
    double squares = 0;
    for (const auto& [name, values] : r.tensors(region::gradients))
      for (double g : values) squares += g * g;
    CHECK(norm == doctest::Approx(std::sqrt(squares)).epsilon(1e-12));
    for (const auto& [name, values] : r.tensors(region::weights)) {
      CAPTURE(name);
      CHECK((values != before.at(name)) == is_trained(r, name));
      ++(is_trained(r, name) ? trained : frozen);
    }
    for (const region of : {region::gradients, region::first_moment, region::second_moment})
      for (const auto& [name, values] : r.tensors(of)) {
        CHECK(is_trained(r, name));
        CHECK(largest({{name, values}}) > 0);
      }
  }
  CHECK(frozen > 500);
  CHECK(trained > 500);
}

}  // namespace layouts_test
