// SPDX-License-Identifier: Apache-2.0
// Checkpoints between plans whose experts are whole, or spread over ranks with the same tokens, or over ranks
// with separate tokens.
#include "between_layouts.hpp"

namespace checkpoint_test {

using between_layouts::programs_of, between_layouts::save_and_load;

TEST_CASE("plans with experts on an axis of their own and others load each other's checkpoints bit for bit") {
  save_and_load(programs_of("mixtral", {}), 12);
  save_and_load(programs_of("biased", {}), 7);
}

}  // namespace checkpoint_test
