// SPDX-License-Identifier: Apache-2.0
// Four ranks that shard the weights, gradients and AdamW moments (FSDP). Each rank keeps a quarter, and
// all-gathers the weights of a layer while the previous layer is computed.
#pragma once
#include "01_gpt_one_rank.hpp"

namespace plans {

inline constexpr plan gpt_sharded{.model = byte_gpt,
                                  .dims = parallel_dims{.world = 4, .dp_shard = infer},
                                  .schedule = schedules::gpipe{.microbatches = 1},
                                  .recipe = byte_recipe,
                                  .cluster = clusters::cpu};
static_assert(valid<gpt_sharded>);

// The same ranks with complete weights during a step: each weight is all-gathered once, and each gradient is
// reduce-scattered once.
inline constexpr plan gpt_sharded_moments{
    .model = byte_gpt,
    .dims = parallel_dims{.world = 4, .dp_shard = infer, .reshard = reshard::after_step},
    .schedule = schedules::gpipe{.microbatches = 1},
    .recipe = byte_recipe,
    .cluster = clusters::cpu};
static_assert(valid<gpt_sharded_moments>);

}  // namespace plans
