// SPDX-License-Identifier: Apache-2.0
// Programs with weights of labels, documents and ignored labels match PyTorch in float64, with one microbatch
// and with four, on every layout.
#include "../packed/compare_layouts.hpp"

namespace weighted_oracle_test {

TEST_CASE("losses and gradients of labels with weights are PyTorch's") {
  const int layouts = packed::compare_layouts(RANKC_TEST_ORACLES "/weighted/llama", 1e-3);
  CHECK(layouts == expected_of(layouts, 34));
}

}  // namespace weighted_oracle_test
