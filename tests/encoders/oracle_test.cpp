// SPDX-License-Identifier: Apache-2.0
// Encoders compute the same as PyTorch in float64, on every layout. The losses of five steps and every
// element of the first gradients are compared.
#include <map>
#include <string>

#include "hashed_oracle.hpp"

namespace encoders_oracle_test {

TEST_CASE("losses and gradients of every layout are PyTorch's") {
  std::map<std::string, int> layouts;
  for (const registered& program : host_registry) {
    CAPTURE(program.job);
    CAPTURE(program.layout);
    hashed_oracle oracle(RANKC_TEST_ORACLES "/encoders/" + program.job);
    run r(program, "arith", 1e-3);
    hashed_oracle::load_weights(r);
    for (std::size_t step = 0; step < oracle.steps(); ++step) oracle.check_step(r, step, r.step());
    ++layouts[program.job];
    MESSAGE(program.job << " " << program.layout << ": " << oracle.worst_differences());
  }
  CHECK(layouts == std::map<std::string, int>{{"regression", 15}, {"vit", 15}});
}

}  // namespace encoders_oracle_test
