// SPDX-License-Identifier: Apache-2.0
// Checkpoints between plans whose experts are whole on each rank, split into columns or rows, or spread over
// ranks.
#include "between_layouts.hpp"

namespace checkpoint_test {

using between_layouts::programs_of, between_layouts::save_and_load;

TEST_CASE("plans with experts on ranks of their own and others load each other's checkpoints bit for bit") {
  save_and_load(programs_of("mixtral", {"one", "tp2", "shards_zbv", "cp_sp", "ep2", "ep4_sp",
                                        "ep2_shards_step", "ep2_shards_sp", "ep2_stages"}),
                9);
}

}  // namespace checkpoint_test
