// SPDX-License-Identifier: Apache-2.0
// Schedules: what they cost is known to the compiler, one may overlap forwards with backwards, and one may be
// your own.
#pragma once
#include <rankc/schedule/timing.hpp>
#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/from_csv.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include "01_gpt_one_rank.hpp"

namespace plans {

inline constexpr parallel_dims two_ranks{.world = 2, .pp = 2};

// Eight microbatches on two ranks; a backward takes two forwards, a half of it one.
static_assert(total(collect(schedules::one_f_one_b{.microbatches = 8}, 2)).bubble > 0.1);
static_assert(total(collect(schedules::zero_bubble_v{.microbatches = 8}, 2)).bubble < 0.03);

// Forwards run beside backwards, on a lane of their own.
inline constexpr plan gpt_dual_pipe_v{.model = byte_gpt,
                                      .dims = two_ranks,
                                      .schedule = schedules::dual_pipe_v{.microbatches = 8},
                                      .recipe = byte_recipe,
                                      .cluster = clusters::cpu};
static_assert(valid<gpt_dual_pipe_v>);

// One that you write down: a line for each rank. It passes the same proof, or does not compile.
inline constexpr plan gpt_by_hand{.model = byte_gpt,
                                  .dims = two_ranks,
                                  .schedule = schedules::from_csv<"0F0, 0F1, 0B0, 0B1\n"
                                                                  "1F0, 1B0, 1F1, 1B1">{},
                                  .recipe = byte_recipe,
                                  .cluster = clusters::cpu};
static_assert(valid<gpt_by_hand>);

}  // namespace plans
