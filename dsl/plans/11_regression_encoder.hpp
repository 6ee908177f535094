// SPDX-License-Identifier: Apache-2.0
// An encoder that predicts two numbers for each sequence of dense features. Tensor-parallel pairs of ranks
// form a pipeline. `encoder_data.py` makes such sequences.
#pragma once
#include <rankc/models/encoder.hpp>
#include <rankc/rankc.hpp>

namespace plans {

using namespace rankc;

inline constexpr models::regression_encoder wave_encoder{
    .layers = 4, .hidden = 64, .heads = 4, .ffn = 128, .features = 8, .outputs = 2};

inline constexpr training recipe_of_waves{.seq = 16,
                                          .global_batch = 32,
                                          .precision = f32,
                                          .lr = 1e-3,
                                          .warmup_steps = 20,
                                          .decay_steps = 200,
                                          .min_lr = 1e-4};

inline constexpr plan regression{.model = wave_encoder,
                                 .dims = parallel_dims{.world = 4, .tp = 2, .pp = 2},
                                 .schedule = schedules::one_f_one_b{.microbatches = 4},
                                 .recipe = recipe_of_waves,
                                 .cluster = clusters::cpu};
static_assert(valid<regression>);

}  // namespace plans
