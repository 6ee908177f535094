// SPDX-License-Identifier: Apache-2.0
// Split plans train what one rank does: every gradient of the first step, and every parameter after five.
#include <doctest/doctest.h>

#include <set>

#include "run.hpp"

namespace {

using rankc::runtime::region;

struct result {
  double loss = 0, norm = 0;
  tensors gradients, weights;
};
result train(const registered& program) {
  run r(program, "arith", 1e-3);
  const auto first = r.step();
  result out{first.loss, first.grad_norm, r.tensors(region::gradients), {}};
  for (int n = 1; n < 5; ++n) r.step();
  out.weights = r.tensors(region::weights);
  return out;
}

}  // namespace

TEST_CASE("gradients, and parameters after five steps, are those of one rank") {
  std::map<std::string, result> one;
  int split = 0;
  double worst = 0, worst_weight = 0;
  for (const registered& program : host_registry) {
    CAPTURE(program.job);
    CAPTURE(program.layout);
    const result found = train(program);
    if (program.layout == "one") {
      one[program.job] = found;
      continue;
    }
    const result& expected = one.at(program.job);
    CHECK(std::abs(found.loss - expected.loss) <= 1e-12 * expected.loss);
    CHECK(std::abs(found.norm - expected.norm) <= 1e-10 * expected.norm);
    REQUIRE(found.gradients.size() == expected.gradients.size());
    const double floor = 1e-6 * largest(expected.gradients);
    for (const auto& [name, values] : expected.gradients) {
      CAPTURE(name);
      REQUIRE(found.gradients.at(name).size() == values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double g = found.gradients.at(name)[i],
                     scale = std::max({std::abs(values[i]), std::abs(g), floor});
        CHECK(std::abs(values[i] - g) <= 1e-10 * scale);
        worst = std::max(worst, std::abs(values[i] - g) / scale);
        if (std::abs(values[i]) <= 1e-9)
          continue;  // AdamW makes a whole step of a gradient that is nothing but rounding
        const double apart = std::abs(expected.weights.at(name)[i] - found.weights.at(name)[i]);
        CHECK(apart <= 1e-10);
        worst_weight = std::max(worst_weight, apart);
      }
    }
    ++split;
  }
  CHECK(one.size() == 4);
  CHECK(split == RANKC_SEQUENCES_SPLIT);
  MESSAGE(split << " split plans, largest relative difference of a gradient " << worst
                << ", of weights after five steps " << worst_weight);
}
