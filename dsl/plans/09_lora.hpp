// SPDX-License-Identifier: Apache-2.0
// LoRA: products of low rank are added to the queries and values, and trained. All other weights are frozen.
#pragma once
#include "01_gpt_one_rank.hpp"

namespace plans {

inline constexpr training adapting{.seq = 128,
                                   .global_batch = 16,
                                   .precision = f32,
                                   .lr = 1e-2,
                                   .lora = {.rank = 8, .alpha = 16, .targets = {"wq", "wv"}}};

inline constexpr plan gpt_lora{.model = byte_gpt,
                               .dims = parallel_dims{.world = 2, .tp = 2},
                               .schedule = schedules::gpipe{.microbatches = 1},
                               .recipe = adapting,
                               .cluster = clusters::cpu};
static_assert(valid<gpt_lora>);

}  // namespace plans
