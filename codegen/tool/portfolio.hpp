// SPDX-License-Identifier: Apache-2.0
// The schedules of the language by name, at run time.
#pragma once
#include <rankc/schedule/timing.hpp>

#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace rankc::tool {

/// What is asked of a schedule.
struct schedule_sizes {
  int pp = 1, stages_per_rank = 1, microbatches = 1;
  int group = 0;  // microbatches of a round, where a schedule leaves that free; 0: its own choice
  bool inference = false;
  rankc::costs costs = {};                             // for the schedules that are built for them
  int memory_limit = std::numeric_limits<int>::max();  // for the search
};

struct known_schedule {
  std::string_view name;
  int stages_per_rank;  // its own, or where that is free what it is if nothing is said
  bool has_free_stages_per_rank;
  /// Its actions. Errors: what the schedule says of sizes for which it is undefined; the table is empty then.
  action_table (*make)(report&, const schedule_sizes&);
};

/// All schedules; the last, "best", is the search for one within a memory limit.
std::span<const known_schedule> portfolio();

/// The names in one sentence: "gpipe, one_f_one_b".
std::string schedule_names();

}  // namespace rankc::tool
