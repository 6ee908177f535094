// SPDX-License-Identifier: Apache-2.0
// The smallest plan: a byte-level GPT on one rank. It has every part of a plan: model, dims, schedule, recipe
// and cluster.
#pragma once
#include <rankc/rankc.hpp>

namespace plans {
using namespace rankc;

inline constexpr auto byte_gpt =
    models::gpt2{.layers = 4, .hidden = 128, .heads = 4, .ffn = 512, .vocab = 256};

inline constexpr training byte_recipe{.seq = 128,
                                      .global_batch = 16,
                                      .precision = f32,
                                      .lr = 2e-3,
                                      .warmup_steps = 20,
                                      .decay_steps = 400,
                                      .min_lr = 2e-4};

inline constexpr plan gpt_one_rank{.model = byte_gpt,
                                   .dims = parallel_dims{.world = 1},
                                   .schedule = schedules::gpipe{.microbatches = 1},
                                   .recipe = byte_recipe,
                                   .cluster = clusters::cpu};
static_assert(valid<gpt_one_rank>);

}  // namespace plans
