// SPDX-License-Identifier: Apache-2.0
// Programs with documents, ignored labels, labels across documents, token weights and a user-defined loss
// match PyTorch in float64, with one microbatch and with four, on every layout.
#include "batch.hpp"
#include "hashed_oracle.hpp"

namespace packed_oracle_test {

TEST_CASE("losses and gradients of packed plans are PyTorch's") {
  int layouts = 0;
  for (const registered& program : host_registry) {
    if (program.job != "llama") continue;
    CAPTURE(program.layout);
    hashed_oracle oracle(RANKC_TEST_ORACLES "/packed/llama");
    run r(program, "arith", 1e-3);
    hashed_oracle::load_weights(r);
    for (std::size_t step = 0; step < oracle.steps(); ++step) {
      packed::load_batch(r);
      oracle.check_step(r, step, r.update());
    }
    for (const auto& [rule, loss] : oracle.expected()["wrong"].items())
      CHECK(std::abs(oracle.expected()["losses"][0].get<double>() - loss.get<double>()) > 1e-2);
    ++layouts;
    MESSAGE(program.layout << ": " << oracle.worst_differences());
  }
  CHECK(layouts == 12);
}

}  // namespace packed_oracle_test
