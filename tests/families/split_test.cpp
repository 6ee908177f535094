// SPDX-License-Identifier: Apache-2.0
// A family's programs in f64: split plans train like one rank. The gradients of the first step are compared,
// and the parameters after three steps, or after five if the family has every program. The last step is timed
// call by call: each rank makes the calls that its table lists.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "calls.hpp"
#include "counts.hpp"

namespace split_test {

using rankc::runtime::region;

TEST_CASE("plans that are split compute what one rank does") {
  const int untimed_steps = host_has_every_program ? 4 : 2;
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
    for (int n = 1; n < untimed_steps; ++n) r.step();
    step_by_calls(r, false);
    const tensors w = r.tensors(region::weights);
    if (program.layout == "one") {
      gradients[program.job] = g;
      weights[program.job] = w;
      first[program.job] = output;
      continue;
    }
    const tensors &one = gradients.at(program.job), &one_w = weights.at(program.job);
    REQUIRE(g.size() == one.size());
    const double floor = 1e-6 * largest(of_loss(one));
    for (const auto& [name, values] : one) {
      CAPTURE(name);
      REQUIRE(g.count(name) == 1);
      REQUIRE(g.at(name).size() == values.size());
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double scale = std::max({std::abs(values[i]), std::abs(g.at(name)[i]), floor});
        const double error = std::abs(values[i] - g.at(name)[i]) / scale;
        CHECK(error <= 1e-10);
        worst = std::max(worst, error);
        // AdamW turns a gradient that is only rounding error into a whole step.
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
  const int jobs = static_cast<int>(split.size());
  CHECK(jobs == expected_of(jobs, jobs_of_family));
  CHECK(plans == expected_of(plans, plans_of_family - jobs_of_family));
  MESSAGE(plans << " split plans, largest relative difference of a gradient " << worst
                << ", of weights after " << untimed_steps + 1 << " steps " << worst_weight);
}

}  // namespace split_test
