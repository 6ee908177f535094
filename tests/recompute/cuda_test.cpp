// SPDX-License-Identifier: Apache-2.0
// Recomputation on GPUs gives the losses, norms and gradients of the plan that keeps everything, except for
// f32's rounding where recomputation splits a fused kernel.
#include <doctest/doctest.h>

#include "run.hpp"

namespace {

using rankc::runtime::region;

void check_all(int gpus, int least) {
  int compared = 0;
  for (const registered& program : cuda_registry) {
    if (program.about->world() != gpus || program.layout == "kept") continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    const auto kept = std::find_if(cuda_registry.begin(), cuda_registry.end(), [&](const registered& p) {
      return p.job == program.job && p.layout == "kept";
    });
    REQUIRE(kept != cuda_registry.end());
    run expected(*kept), found(program);
    const auto wanted = expected.step(), got = found.step();
    CHECK(got.loss == doctest::Approx(wanted.loss).epsilon(1e-6));
    CHECK(got.grad_norm == doctest::Approx(wanted.grad_norm).epsilon(1e-5));
    const tensors gradients = expected.tensors(region::gradients);
    const double scale = largest(gradients);
    CHECK(scale > 1e-4);
    for (const auto& [name, values] : found.tensors(region::gradients)) {
      CAPTURE(name);
      for (std::size_t i = 0; i < values.size(); ++i)
        CHECK(std::abs(values[i] - gradients.at(name)[i]) <= 1e-5 * scale);
    }
    ++compared;
  }
  CHECK(compared >= least);
}

}  // namespace

TEST_CASE("1 GPU: recomputation changes nothing") { check_all(1, 7); }
TEST_CASE("2 GPUs: recomputation changes nothing") { check_all(2, 14); }
