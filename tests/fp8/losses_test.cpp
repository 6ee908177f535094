// SPDX-License-Identifier: Apache-2.0
// On the host, fp8 linear layers give PyTorch's losses by the same recipe, on every layout whose ranks round
// whole tensors: of six steps, and of all if RANKC_EVERY_STEP is set. On other layouts, gradients differ from
// unrounded gradients as much as on one rank.
#include "../some_of.hpp"
#include "calls.hpp"
#include "losses.hpp"

namespace losses_test {

TEST_CASE("losses of fp8 layers are PyTorch's") {
  int compared = 0;
  for (const registered& program : host_registry) {
    std::vector<double> expected = expected_losses(program.job);
    if (expected.empty()) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    CHECK(expected.size() == 10);
    expected.resize(rankc::test::some_steps(expected.size()));
    CHECK(difference_of_losses(program, expected) <= 1e-9);
    run timed(program);
    step_by_calls(timed, false);
    ++compared;
  }
  CHECK(compared == 28);
}

TEST_CASE("rounded gradients are near unrounded gradients, on parts of tensors too") {
  for (const std::string model : {"llama", "gpt2"}) {
    const tensors plain = gradients_of(find_program(host_registry, model + "_plain", "one", "f64"));
    for (const std::string& recipe : {model, model + "_rows"}) {
      CAPTURE(recipe);
      const double whole =
          distance(gradients_of(find_program(host_registry, recipe + "_2", "one", "f64")), plain);
      CHECK(whole > 0.01);
      CHECK(whole < 0.1);
      for (const std::string layout : {"tp2", "sp_pp2"})
        CHECK(distance(gradients_of(find_program(host_registry, recipe + "_parts", layout, "f64")), plain) <
              1.2 * whole);
    }
  }
}

}  // namespace losses_test
