// SPDX-License-Identifier: Apache-2.0
// Eight ranks: dp, tp and pp of two each, with sequence parallelism. The degree of dp is inferred.
#pragma once
#include "01_gpt_one_rank.hpp"

namespace plans {

inline constexpr parallel_dims eight_ranks{
    .world = 8, .dp_replicate = infer, .tp = 2, .pp = 2, .sequence_parallel = true};

inline constexpr plan gpt_dp2_tp2_pp2{.model = byte_gpt,
                                      .dims = eight_ranks,
                                      .schedule = schedules::one_f_one_b{.microbatches = 4},
                                      .recipe = byte_recipe,
                                      .cluster = clusters::cpu};
static_assert(valid<gpt_dp2_tp2_pp2>);
static_assert(resolve(gpt_dp2_tp2_pp2.dims).dp_replicate == 2);

}  // namespace plans
