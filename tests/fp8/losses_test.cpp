// SPDX-License-Identifier: Apache-2.0
// fp8 linear layers on the host give PyTorch's losses with the same recipe, on every layout whose ranks have
// the tensors of one rank. On other layouts, gradients are as far from unrounded ones as on one rank. Losses
// are compared for five steps, or for ten if RANKC_EVERY_STEP is set.
#include "calls.hpp"
#include "losses.hpp"

#include <cstdlib>

namespace losses_test {

TEST_CASE("losses are PyTorch's, of operands in eight bits") {
  const std::size_t steps = std::getenv("RANKC_EVERY_STEP") ? 10 : 5;
  int compared = 0;
  for (const registered& program : host_registry) {
    const std::vector<double> expected = expected_losses(program.job);
    if (expected.empty()) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    REQUIRE(expected.size() == 10);
    CHECK(difference_of_losses(program, std::span(expected).first(steps)) <= 1e-9);
    run timed(program);
    step_by_calls(timed, false);
    ++compared;
  }
  CHECK(compared == 28);
}

TEST_CASE("rounded gradients are near those that are not, on parts too") {
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
