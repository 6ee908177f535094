// SPDX-License-Identifier: Apache-2.0
// The schedules of the language by name, at run time.
#pragma once
#include <rankc/schedule/timing.hpp>

#include <limits>
#include <span>
#include <string>
#include <string_view>

namespace rankc::tool {

/// The sizes for which a schedule is built.
struct schedule_sizes {
  int pp = 1, stages_per_rank = 1, microbatches = 1;
  int group = 0;  // microbatches of a round, if the schedule leaves that free; 0: its default
  bool inference = false;
  rankc::costs costs = {};                             // for schedules that are built from costs
  int memory_limit = std::numeric_limits<int>::max();  // for the search
};

struct known_schedule {
  std::string_view name;
  int stages_per_rank;  // its own; if that is free, the default
  bool has_free_stages_per_rank;
  /// Makes its actions. Errors: those of the schedule for sizes for which it is undefined; the table is then
  /// empty.
  action_table (*make)(report&, const schedule_sizes&);
};

/// All schedules. The last, "best", searches for one within a memory limit.
std::span<const known_schedule> portfolio();

/// The names in one sentence: "gpipe, one_f_one_b".
std::string schedule_names();

}  // namespace rankc::tool
