// SPDX-License-Identifier: Apache-2.0
// Merges an I and a W into a B where a schedule splits a backward without need.
#pragma once
#include <rankc/schedule/complete.hpp>
#include <rankc/schedule/gather.hpp>
#include <rankc/schedule/timing.hpp>

#include <vector>

namespace rankc {

namespace detail {

/// The time at which the previous stage uses the input gradient of each stage and microbatch; `never` for the
/// first stage.
/// Shapes: (stages x microbatches).
constexpr std::vector<double> find_uses(const action_table& t, const timing& when) {
  constexpr double never = 1e300;
  std::vector<double> use(static_cast<std::size_t>(t.stages()) * t.microbatches, never);
  for (std::size_t i = 0; i < t.actions.size(); ++i) {
    const action& a = t.actions[i];
    if ((a.kind == action_kind::B || a.kind == action_kind::I) && a.stage + 1 < t.stages())
      use[static_cast<std::size_t>(a.stage + 1) * t.microbatches + a.microbatch] = when.begin[i];
  }
  return use;
}

}  // namespace detail

/// Merges each I and its own W right after it into a B, unless a rank waits for the I. A B is one pass over
/// the stage and saves nothing between two halves. A rank waits for the I if, in the max-plus solution of the
/// table, the previous stage begins its backward earlier than it could after the W. So no action begins
/// later, and the makespan stays the same. The halves of an OVERLAP are not merged.
/// The table must pass check_actions.
constexpr action_table fuse_backward(action_table t, const costs& c = {}) {
  const timing when = time(t, c);
  const std::vector<double> use = detail::find_uses(t, when);
  // True if the I at `i` is merged with the action after it. `first` is the first action of the rank.
  const auto fuses = [&](int rank, int first, int i) {
    const action &a = t.actions[i], &w = t.actions[i + 1];
    if (a.kind != action_kind::I || w != action{action_kind::W, a.stage, a.microbatch}) return false;
    if (a.overlaps_next || (i > first && t.actions[i - 1].overlaps_next)) return false;
    const bool is_sent = a.stage > 0 && t.rank_of(a.stage - 1, a.microbatch) != rank;
    return when.end[i + 1] + (is_sent ? c.send : 0) <=
           use[static_cast<std::size_t>(a.stage) * t.microbatches + a.microbatch];
  };
  int to = 0, from = 0;
  for (int rank = 0; rank < t.ranks(); ++rank) {
    const int first = from, end = t.begin[rank + 1];
    t.begin[rank] = to;
    for (; from < end; ++from) {
      action a = t.actions[from];
      if (from + 1 < end && fuses(rank, first, from)) {
        a.kind = action_kind::B;
        ++from;
      }
      t.actions[to++] = a;
    }
  }
  t.begin.back() = to;
  t.actions.resize(static_cast<std::size_t>(to));
  return t;
}

/// True if the schedule runs as written: an I and a W are not merged.
constexpr bool keeps_order(const auto& schedule) {
  if constexpr (requires { schedule.as_written; }) return schedule.as_written;
  else return false;
}

/// The actions of a schedule as ranks with these dims run them.
constexpr action_table actions_of(const auto& schedule, const parallel_dims& d) {
  const action_table emitted = collect(schedule, d.pp);
  if (keeps_order(schedule)) return gather_by_stage(complete(emitted), d);
  return gather_by_stage(complete(fuse_backward(emitted)), d);
}

}  // namespace rankc
