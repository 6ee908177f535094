// SPDX-License-Identifier: Apache-2.0
// The plan of the outside projects: one layer, for a short build and a short training.
#pragma once
#include <rankc/rankc.hpp>

namespace my {
using namespace rankc;

inline constexpr auto model = models::gpt2{.layers = 1, .hidden = 32, .heads = 2, .ffn = 64, .vocab = 64};
inline constexpr training recipe{.seq = 16, .global_batch = 4, .precision = f32, .lr = 1e-2};

inline constexpr plan gpt{.model = model,
                          .dims = parallel_dims{.world = 1},
                          .schedule = schedules::gpipe{.microbatches = 1},
                          .recipe = recipe,
                          .cluster = clusters::cpu};
static_assert(valid<gpt>);

}  // namespace my
