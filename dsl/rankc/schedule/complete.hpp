// SPDX-License-Identifier: Apache-2.0
// Adds the REDUCE_GRAD and STEP actions that a training schedule leaves out.
#pragma once
#include <rankc/schedule/actions.hpp>

#include <utility>
#include <vector>

namespace rankc {

namespace detail {

/// The end of a stage on a rank.
struct stage_end {
  int stage;
  action* reduced_before;  // REDUCE_GRAD is inserted before this action
  bool has_gradient = false, reduces = false, steps = false;
};

/// Finds the end of each stage in the actions [first, last) of a rank. Only the tail is read, because the
/// schedule's own REDUCE_GRAD and STEP come after the gradients.
constexpr std::vector<stage_end> find_ends(const action_table& t, int rank, action* first, action* last) {
  std::vector<stage_end> ends;
  std::vector<int> end_of(static_cast<std::size_t>(t.stages()), -1);
  for (int s = 0; s < t.stages(); ++s)
    if (t.has_stage(rank, s)) {
      end_of[s] = static_cast<int>(ends.size());
      ends.push_back({s, last});
    }
  std::size_t open = ends.size();
  for (action* a = last; a != first && open > 0;) {
    --a;
    if (a->stage < 0 || a->stage >= t.stages() || end_of[a->stage] < 0) continue;  // refused by check_actions
    stage_end& e = ends[end_of[a->stage]];
    e.steps |= a->kind == action_kind::step;
    e.reduces |= a->kind == action_kind::reduce_grad;
    if (a->kind == action_kind::F || !computes(a->kind) || e.has_gradient) continue;
    e.reduced_before = a + (a->overlaps_next ? 2 : 1);
    e.has_gradient = true;
    --open;
  }
  return ends;
}

}  // namespace detail

/// Inserts the missing actions (see complete) into the actions [first, last) of a rank, behind which there is
/// room for two more per stage. Returns their new end.
constexpr action* complete_rank(const action_table& t, int rank, action* first, action* last) {
  if (t.inference || (first != last && last[-1].overlaps_next))
    return last;  // check_actions refuses the latter
  std::vector<detail::stage_end> ends = detail::find_ends(t, rank, first, last);
  if (t.bidirectional())  // both ranks of a stage reduce in one order, that of the stages
    for (std::size_t k = 1; k < ends.size(); ++k)
      if (ends[k].reduced_before < ends[k - 1].reduced_before)
        ends[k].reduced_before = ends[k - 1].reduced_before;
  const auto find_latest = [&] {
    detail::stage_end* latest = nullptr;
    for (detail::stage_end& e : ends)
      if (!e.reduces && (!latest || e.reduced_before >= latest->reduced_before)) latest = &e;
    return latest;
  };
  while (detail::stage_end* const e = find_latest()) {
    for (action* a = last++; a != e->reduced_before; --a) *a = a[-1];
    *e->reduced_before = {action_kind::reduce_grad, e->stage, 0};
    e->reduces = true;
  }
  for (const detail::stage_end& e : ends)
    if (!e.steps) *last++ = {action_kind::step, e.stage, 0};
  return last;
}

/// Adds the missing actions of a training schedule. A REDUCE_GRAD comes right after the last gradient of a
/// stage on a rank; in a bidirectional schedule they are also in the order of the stages. The STEPs come at
/// the end of the rank. A REDUCE_GRAD or STEP of the schedule itself stays.
constexpr action_table complete(action_table t) {
  const std::vector<action> said = std::move(t.actions);
  t.actions.assign(said.size() + 2 * t.rank_of_stage.size() * t.begin.size(), action{});
  action* const begin = t.actions.data();
  action* to = begin;
  const action* from = said.data();
  for (int r = 0; r < t.ranks(); ++r) {
    action* const first = to;
    t.begin[r] = static_cast<int>(first - begin);
    for (const action* const end = said.data() + t.begin[r + 1]; from != end; ++from) *to++ = *from;
    to = complete_rank(t, r, first, to);
  }
  t.begin.back() = static_cast<int>(to - begin);
  t.actions.resize(static_cast<std::size_t>(to - begin));
  return t;
}

/// The completed actions of a schedule: complete(collect(schedule, pp)), hardly slower to compile than
/// collect alone.
template <class Schedule>
constexpr action_table complete(const Schedule& schedule, int pp) {
  if constexpr (requires { schedule.table(pp); }) return complete(schedule.table(pp));
  else return collect(schedule, pp, complete_rank);
}

}  // namespace rankc
