// SPDX-License-Identifier: Apache-2.0
// Programs with weights of labels, documents and ignored labels match PyTorch in float64, with one microbatch
// and with four, on every layout.
#include "../packed/compare_layouts.hpp"

namespace weighted_oracle_test {

TEST_CASE("losses and gradients of labels with weights are PyTorch's") {
  CHECK(packed::compare_layouts(RANKC_TEST_ORACLES "/weighted/llama", 1e-3) ==
        (host_has_every_program ? 34 : 15));
}

}  // namespace weighted_oracle_test
