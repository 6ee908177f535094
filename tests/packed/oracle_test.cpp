// SPDX-License-Identifier: Apache-2.0
// Programs with documents, ignored labels, labels across documents, token weights and a user-defined loss
// match PyTorch in float64, with one microbatch and with four, on every layout.
#include "compare_layouts.hpp"

namespace packed_oracle_test {

TEST_CASE("losses and gradients of packed plans are PyTorch's") {
  CHECK(packed::compare_layouts(RANKC_TEST_ORACLES "/packed/llama", 1e-2) == 12);
}

}  // namespace packed_oracle_test
