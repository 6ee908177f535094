// SPDX-License-Identifier: Apache-2.0
// The schedules with closed orders, by name.
#pragma once
#include <rankc/schedules/dual_pipe.hpp>
#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/gpipe.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/schedules/interleaved_zero_bubble.hpp>
#include <rankc/schedules/looped_bfs.hpp>
#include <rankc/schedules/one_f_one_b.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include <optional>

/// The arguments of a schedule.
struct asked {
  int pp = 1, stages_per_rank = 1, microbatches = 1;
  bool inference = false;
};

struct known_schedule {
  std::string_view name;
  /// The table; empty if the schedule does not have this number of stages per rank, has no inference, or
  /// refuses.
  std::optional<rankc::action_table> (*collect)(const asked&);
};

template <class Schedule>
constexpr known_schedule known{Schedule::name, [](const asked& a) -> std::optional<rankc::action_table> {
                                 Schedule s{.microbatches = a.microbatches};
                                 if constexpr (requires { s.stages_per_rank = 1; })
                                   s.stages_per_rank = a.stages_per_rank;
                                 if constexpr (requires { s.inference; }) s.inference = a.inference;
                                 else if (a.inference) return {};
                                 rankc::report refused;
                                 if constexpr (requires { s.check(refused, 1); }) s.check(refused, a.pp);
                                 if (s.stages_per_rank != a.stages_per_rank || !refused.empty()) return {};
                                 return rankc::collect(s, a.pp);
                               }};

inline constexpr known_schedule portfolio[]{
    known<rankc::schedules::gpipe>,
    known<rankc::schedules::one_f_one_b>,
    known<rankc::schedules::looped_bfs>,
    known<rankc::schedules::interleaved_one_f_one_b>,
    known<rankc::schedules::interleaved_zero_bubble>,
    known<rankc::schedules::zero_bubble_v>,
    known<rankc::schedules::dual_pipe>,
    known<rankc::schedules::dual_pipe_v>,
};
