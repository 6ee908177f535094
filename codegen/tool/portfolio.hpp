// SPDX-License-Identifier: Apache-2.0
// The schedules of the language by name, at run time.
#pragma once
#include <rankc/schedule/timing.hpp>

#include <span>
#include <string>
#include <string_view>

namespace rankc::tool {

/// What is asked of a schedule.
struct schedule_sizes {
  int pp = 1, stages_per_rank = 1, microbatches = 1;
  bool inference = false;
};

struct known_schedule {
  std::string_view name;
  int stages_per_rank;           // its own, or where that is free what it is if nothing is said
  bool has_free_stages_per_rank;
  /// Its actions. Errors: what the schedule says of sizes for which it is undefined; the table is empty then.
  action_table (*make)(report&, const schedule_sizes&);
};

std::span<const known_schedule> portfolio();

/// The names in one sentence: "gpipe, one_f_one_b".
std::string schedule_names();

}  // namespace rankc::tool
