// SPDX-License-Identifier: Apache-2.0
// Schedules: the compiler knows their bubbles, one overlaps forwards with backwards, and one is written by
// hand.
#pragma once
#include <rankc/schedule/timing.hpp>
#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/from_csv.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include "01_gpt_one_rank.hpp"

namespace plans {

inline constexpr parallel_dims two_ranks{.world = 2, .pp = 2};

// Eight microbatches on two ranks. A backward takes as long as two forwards, each half of it as long as one.
static_assert(total(collect(schedules::one_f_one_b{.microbatches = 8}, 2)).bubble > 0.1);
static_assert(total(collect(schedules::zero_bubble_v{.microbatches = 8}, 2)).bubble < 0.03);

// Forwards overlap backwards, on a second stream.
inline constexpr plan gpt_dual_pipe_v{.model = byte_gpt,
                                      .dims = two_ranks,
                                      .schedule = schedules::dual_pipe_v{.microbatches = 8},
                                      .recipe = byte_recipe,
                                      .cluster = clusters::cpu};
static_assert(valid<gpt_dual_pipe_v>);

// A schedule written by hand, with one line for each rank. It compiles only if it passes the same checks.
inline constexpr plan gpt_by_hand{.model = byte_gpt,
                                  .dims = two_ranks,
                                  .schedule = schedules::from_csv<"0F0, 0F1, 0B0, 0B1\n"
                                                                  "1F0, 1B0, 1F1, 1B1">{},
                                  .recipe = byte_recipe,
                                  .cluster = clusters::cpu};
static_assert(valid<gpt_by_hand>);

}  // namespace plans
