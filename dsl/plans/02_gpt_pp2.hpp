// SPDX-License-Identifier: Apache-2.0
// Two pipeline stages: the same GPT with its four layers split over two ranks, and 1F1B with four
// microbatches.
#pragma once
#include "01_gpt_one_rank.hpp"

namespace plans {

inline constexpr plan gpt_pp2{.model = byte_gpt,
                              .dims = parallel_dims{.world = 2, .pp = 2},
                              .schedule = schedules::one_f_one_b{.microbatches = 4},
                              .recipe = byte_recipe,
                              .cluster = clusters::cpu};
static_assert(valid<gpt_pp2>);

}  // namespace plans
