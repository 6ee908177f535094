// SPDX-License-Identifier: Apache-2.0
// Checkpoints between plans whose experts are whole, in columns over tp, and on ranks that share out their
// columns; and their begin.
#include "between_layouts.hpp"

namespace checkpoint_test {

using between_layouts::programs_of, between_layouts::save_and_load;

TEST_CASE("plans with columns of experts and others load each other's checkpoints bit for bit") {
  CHECK(save_and_load(programs_of("mixtral", {"one", "over_tp", "shards", "wide_sp", "rest", "rest_sp",
                                              "replicas", "sp_zbv"})) == 64);
  CHECK(save_and_load(programs_of("primes", {})) == 9);
  CHECK(save_and_load(programs_of("across", {})) == 121);
}

}  // namespace checkpoint_test
