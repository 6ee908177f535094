// SPDX-License-Identifier: Apache-2.0
// Checkpoints between plans.
#include "between_layouts.hpp"

namespace checkpoint_test {

using between_layouts::programs_of, between_layouts::save_and_load;

TEST_CASE("fourteen plans of a GPT-2 with tied weights load each other's checkpoints bit for bit") {
  save_and_load(
      programs_of("gpt", {"one", "tp", "microbatches", "dual_pipe_v", "after_layer",
                          "after_step_and_dp_replicate", "after_stage_and_dual_pipe_v",
                          "after_layer_and_one_f_one_b_and_recompute_and_sequence_parallel",
                          "dp_replicate_and_one_f_one_b_and_tp", "after_step_and_zero_bubble_v",
                          "interleaved_one_f_one_b_and_tp", "dp_replicate_and_interleaved_one_f_one_b",
                          "after_layer_and_cp_and_recompute_and_zero_bubble_v", "cp_and_dual_pipe_v_and_tp"}),
      14);
}

TEST_CASE("so do plans that share weights by three, with rows of padding") {
  save_and_load(programs_of("latent", {"one", "tp2", "padded", "prefetch_2", "shards_zbv"}), 5);
  save_and_load(programs_of("head_norms", {"hsdp", "padded", "shards_bfs"}), 3);
}

}  // namespace checkpoint_test
