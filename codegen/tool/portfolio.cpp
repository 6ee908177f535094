// SPDX-License-Identifier: Apache-2.0
#include "portfolio.hpp"

#include <rankc/schedules/dual_pipe.hpp>
#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/gpipe.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/schedules/interleaved_zero_bubble.hpp>
#include <rankc/schedules/looped_bfs.hpp>
#include <rankc/schedules/one_f_one_b.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include <algorithm>
#include <iterator>

namespace rankc::tool {

namespace {

/// Only the forwards, of a schedule that has no order of its own for inference.
action_table forwards_of(const action_table& t) {
  action_table out = t;
  out.inference = true;
  out.actions.clear();
  out.begin.clear();
  for (int r = 0; r < t.ranks(); ++r) {
    out.begin.push_back(static_cast<int>(out.actions.size()));
    for (int i = t.begin[r]; i < t.begin[r + 1]; ++i)
      if (const action& a = t.actions[i]; a.kind == action_kind::F) out.actions.push_back({a.kind, a.stage, a.microbatch});
  }
  out.begin.push_back(static_cast<int>(out.actions.size()));
  return out;
}

template <class Schedule>
action_table make(report& out, const schedule_sizes& sizes) {
  Schedule schedule;
  schedule.microbatches = sizes.microbatches;
  if constexpr (requires { schedule.stages_per_rank = 1; }) schedule.stages_per_rank = sizes.stages_per_rank;
  if constexpr (requires { schedule.inference; }) schedule.inference = sizes.inference;
  const std::size_t before = out.size();
  if constexpr (requires { schedule.check(out, sizes.pp); }) schedule.check(out, sizes.pp);
  if (out.size() > before) return {};
  action_table t = collect(schedule, sizes.pp);
  return sizes.inference && !t.inference ? forwards_of(t) : t;
}

template <class Schedule>
constexpr known_schedule known{Schedule::name, Schedule{}.stages_per_rank,
                               requires(Schedule s) { s.stages_per_rank = 1; }, make<Schedule>};

using namespace rankc::schedules;

constexpr known_schedule all[]{known<gpipe>,
                               known<one_f_one_b>,
                               known<looped_bfs>,
                               known<interleaved_one_f_one_b>,
                               known<interleaved_zero_bubble>,
                               known<zero_bubble_v>,
                               known<dual_pipe>,
                               known<dual_pipe_v>};

}  // namespace

std::span<const known_schedule> portfolio() { return all; }

std::string schedule_names() {
  std::string names;
  for (const known_schedule& s : all) names += (names.empty() ? "" : ", ") + std::string(s.name);
  return names;
}

}  // namespace rankc::tool
