// SPDX-License-Identifier: Apache-2.0
// Recomputed values are equal to the last bit: losses, norms, gradients and weights are those of the plan
// that keeps everything.
#include <doctest/doctest.h>

#include "calls.hpp"
#include "counts.hpp"

#include <algorithm>
#include <set>
#include <vector>

namespace recompute_test {

namespace {

/// All results of a few steps.
struct result {
  std::vector<double> losses, norms;
  tensors gradients, weights;
  bool operator==(const result&) const = default;
};

result train(const registered& program) {
  using rankc::runtime::region;
  run r(program, "arith", 1e-3);
  result out;
  for (int n = 0; n < 3; ++n) {
    const auto step = n < 2 ? r.step() : step_by_calls(r, false);
    out.losses.push_back(step.loss);
    out.norms.push_back(step.grad_norm);
    if (n == 0) out.gradients = r.tensors(region::gradients);
  }
  out.weights = r.tensors(region::weights);
  return out;
}

}  // namespace

TEST_CASE("gradients and weights are those of the plan that keeps everything, bit for bit") {
  std::string job;
  result kept;
  std::set<std::string> jobs;
  int compared = 0;
  for (const registered& program : host_registry) {
    CAPTURE(program.job);
    CAPTURE(program.layout);
    CAPTURE(program.type);
    if (program.layout == "kept") continue;
    if (job != program.job + program.type) {
      const auto is_kept = [&](const registered& p) {
        return p.job == program.job && p.type == program.type && p.layout == "kept";
      };
      kept = train(*std::find_if(host_registry.begin(), host_registry.end(), is_kept));
      CHECK(largest(kept.gradients) > 1e-4);
      job = program.job + program.type;
      jobs.insert(job);
    }
    const result found = train(program);
    CHECK(found.losses == kept.losses);
    CHECK(found.norms == kept.norms);
    CHECK((found.gradients == kept.gradients));
    CHECK((found.weights == kept.weights));
    ++compared;
  }
  CHECK(static_cast<int>(jobs.size()) == jobs_of_family);
  CHECK(compared >= jobs_of_family);
  CHECK(compared == expected_of(compared, plans_of_family - jobs_of_family));
}

}  // namespace recompute_test
