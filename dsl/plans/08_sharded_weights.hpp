// SPDX-License-Identifier: Apache-2.0
// Four ranks that share out the weights, their gradients and AdamW's moments: each keeps a quarter, and
// gathers the weights of a layer while the one before it is computed.
#pragma once
#include "01_gpt_one_rank.hpp"

namespace plans {

inline constexpr plan gpt_sharded{.model = byte_gpt,
                                  .dims = parallel_dims{.world = 4, .dp_shard = infer},
                                  .schedule = schedules::gpipe{.microbatches = 1},
                                  .recipe = byte_recipe,
                                  .cluster = clusters::cpu};
static_assert(valid<gpt_sharded>);

// The same ranks, each with all weights during a step: they are gathered once, and each gradient is dealt out
// once.
inline constexpr plan gpt_sharded_moments{
    .model = byte_gpt,
    .dims = parallel_dims{.world = 4, .dp_shard = infer, .reshard = reshard::after_step},
    .schedule = schedules::gpipe{.microbatches = 1},
    .recipe = byte_recipe,
    .cluster = clusters::cpu};
static_assert(valid<gpt_sharded_moments>);

}  // namespace plans
