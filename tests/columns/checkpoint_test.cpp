// SPDX-License-Identifier: Apache-2.0
// Checkpoints between plans whose experts are whole, split into columns over tp, or on ranks that shard their
// columns.
#include "between_layouts.hpp"

namespace checkpoint_test {

using between_layouts::programs_of, between_layouts::save_and_load;

TEST_CASE("plans with columns of experts and others load each other's checkpoints bit for bit") {
  save_and_load(programs_of("mixtral",
                            {"one", "over_tp", "shards", "wide_sp", "rest", "rest_sp", "replicas", "sp_zbv"}),
                8);
  save_and_load(programs_of("primes", {}), 3);
  save_and_load(programs_of("across", {}), 11);
}

}  // namespace checkpoint_test
