// SPDX-License-Identifier: Apache-2.0
// The same recipe on GPUs, where a GEMM takes the weights of several layers as one tensor: losses are close
// to PyTorch's, and gradients as close to the host's unrounded ones as the host's own.
#include "losses.hpp"

namespace {

void check_all(int gpus, int least) {
  int compared = 0;
  for (const registered& program : cuda_registry) {
    if (program.about->world() != gpus || program.job.ends_with("plain")) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    CAPTURE(program.type);
    const std::string recipe = recipe_of(program.job),
                      microbatches = program.job.ends_with("_1") ? "_1" : "_2";
    const std::vector<double> expected = expected_losses(recipe + microbatches);
    REQUIRE(expected.size() == 10);
    CHECK(difference_of_losses(program, expected) <= 0.02);
    if (microbatches == "_2") {
      const tensors plain =
          gradients_of(find_program(host_registry, model_of(program.job) + "_plain", "one", "f64"));
      const double own =
          distance(gradients_of(find_program(host_registry, recipe + "_2", "one", "f64")), plain);
      const double found = distance(gradients_of(program), plain);
      MESSAGE("from unrounded gradients " << found << ", the host's " << own);
      CHECK(found < 1.3 * own);
    }
    ++compared;
  }
  CHECK(compared >= least);
}

}  // namespace

TEST_CASE("1 GPU: products of eight bits") { check_all(1, 24); }
TEST_CASE("2 GPUs: products of eight bits") { check_all(2, 36); }
