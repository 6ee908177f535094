// SPDX-License-Identifier: Apache-2.0
// Programs with weights of labels, documents and ignored labels match PyTorch in float64, with one microbatch
// and with four, on every layout.
#include "../packed/batch.hpp"
#include "hashed_oracle.hpp"

namespace weighted_oracle_test {

TEST_CASE("losses and gradients of labels with weights are PyTorch's") {
  int layouts = 0;
  for (const registered& program : host_registry) {
    if (program.job != "llama") continue;
    CAPTURE(program.layout);
    hashed_oracle oracle(RANKC_TEST_ORACLES "/weighted/llama");
    run r(program, "arith", 1e-3);
    hashed_oracle::load_weights(r);
    for (std::size_t step = 0; step < oracle.steps(); ++step) {
      packed::load_batch(r);
      oracle.check_step(r, step, r.update());
    }
    for (const auto& [rule, loss] : oracle.expected()["wrong"].items())
      CHECK(std::abs(oracle.expected()["losses"][0].get<double>() - loss.get<double>()) > 1e-3);
    ++layouts;
    MESSAGE(program.layout << ": " << oracle.worst_differences());
  }
  CHECK(layouts == expected_of(layouts, 34));
}

}  // namespace weighted_oracle_test
