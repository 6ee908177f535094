// SPDX-License-Identifier: Apache-2.0
// The best schedule found for given costs and memory. Source: rankc/schedules/best_schedule.hpp.
#pragma once
#include <rankc/schedules/best_schedule.hpp>

namespace rankc::schedules {

/// best_schedule as a plan's schedule. A compiler runs the search, and needs seconds for each hundred `runs` of a small
/// pipeline: look for the numbers with `rankc schedule` first, or leave `runs` at 0 for the best of the published ones.
/// Where costs differ by stage, ask best_schedule itself. Errors: RC307.
/// Units: memory_limit in microbatches of one stage that a rank holds.
struct best {
  int microbatches = 1, stages_per_rank = 1;
  planned_costs cost = {};
  int memory_limit = std::numeric_limits<int>::max();
  int runs = 20;
  static constexpr std::string_view name = "best";
  constexpr action_table table(int pp) const {
    return best_schedule({.pp = pp,
                          .stages_per_rank = stages_per_rank,
                          .microbatches = microbatches,
                          .cost = cost,
                          .memory_limit = memory_limit,
                          .runs = runs})
        .table;
  }
  constexpr int rank_of_stage(int stage, int pp) const { return table(pp).rank_of_stage[stage]; }
  constexpr void check(report& out, int) const {
    if (memory_limit < stages_per_rank)
      refuse(out, 307) << "memory_limit=" << memory_limit << ", but one microbatch alone holds its activations of the "
                       << stages_per_rank << " stages of a rank; take at least " << stages_per_rank;
  }
};

}  // namespace rankc::schedules
