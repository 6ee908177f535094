// SPDX-License-Identifier: Apache-2.0
// Small plans for injected faults: 4 and 8 ranks, with messages and collectives.
#pragma once
#include <rankc/rankc.hpp>

namespace faults {
using namespace rankc;

inline constexpr auto model = models::gpt2{.layers = 2, .hidden = 16, .heads = 2, .ffn = 32, .vocab = 256};
inline constexpr training recipe{.seq = 8, .global_batch = 8, .precision = f32, .lr = 1e-3};

inline constexpr plan four{.model = model,
                           .dims = parallel_dims{.world = 4, .dp_replicate = 2, .pp = 2},
                           .schedule = schedules::one_f_one_b{.microbatches = 2},
                           .recipe = recipe,
                           .cluster = clusters::cpu};
static_assert(valid<four>);

inline constexpr plan eight{
    .model = model,
    .dims = parallel_dims{.world = 8, .dp_replicate = 2, .tp = 2, .pp = 2, .sequence_parallel = true},
    .schedule = schedules::one_f_one_b{.microbatches = 2},
    .recipe = recipe,
    .cluster = clusters::cpu};
static_assert(valid<eight>);

}  // namespace faults
