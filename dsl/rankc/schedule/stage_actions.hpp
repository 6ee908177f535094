// SPDX-License-Identifier: Apache-2.0
// The rules for actions of whole stages. Weights are gathered while the stage computes. Its gradients are
// reduced once, after the last gradient. Its optimizer step is last.
#pragma once
#include <rankc/schedule/actions.hpp>

#include <vector>

namespace rankc::detail {

/// True if `later` may follow `a` on a rank. No gradient of a stage may follow its REDUCE_GRAD, and no action
/// of a stage may follow its STEP.
constexpr bool may_follow(const action& a, const action& later) {
  if (a.stage != later.stage || a.kind < action_kind::reduce_grad) return true;
  if (a.kind == action_kind::step) return false;
  return later.kind == action_kind::F || (!computes(later.kind) && later.kind != action_kind::reduce_grad);
}

/// The first action after `a` that may not follow it; `end` if there is none.
constexpr const action* find_misplaced(const action* a, const action* end) {
  const action* later = a + 1;
  while (later != end && may_follow(*a, *later)) ++later;
  return later;
}

/// RC310: an action that may not follow the stage's REDUCE_GRAD or STEP.
constexpr bool refuse_behind(report& out, const action_table& t, int rank) {
  const action* const end = t.actions.data() + t.begin[rank + 1];
  for (const action* a = t.actions.data() + t.begin[rank]; a != end; ++a) {
    const action* const later = computes(a->kind) ? end : find_misplaced(a, end);
    if (later == end) continue;
    const action* last = end - 1;
    while (last != a && (last->kind == a->kind || may_follow(*a, *last))) --last;
    sentence& s = refuse(out, 310) << "rank " << rank << " has " << *later << " behind " << *a
                                   << ", which comes once, after "
                                   << (a->kind == action_kind::step ? "all else of the stage: "
                                                                    : "the last gradient of the stage: ");
    if (last == a) s << "leave one out";
    else s << "put it behind " << *last;
    return true;
  }
  return false;
}

/// RC310: a computation on sharded weights, or an UNSHARD or RESHARD out of turn. `is_sharded` of a stage is
/// true if the table gathers its weights anywhere: then they are complete only between UNSHARD and RESHARD.
/// Shapes: is_sharded (stages).
constexpr bool refuse_sharded(report& out, const action_table& t, int rank, std::vector<char> is_sharded) {
  const std::vector<char> gathers = is_sharded;
  std::vector<action> last(is_sharded.size());
  for (int i = t.begin[rank]; i < t.begin[rank + 1]; ++i) {
    const action& a = t.actions[i];
    if (a.kind > action_kind::reshard || !gathers[a.stage]) continue;
    char& sharded = is_sharded[a.stage];
    if (sharded == (a.kind == action_kind::unshard)) {
      if (!computes(a.kind)) sharded = !sharded;
      last[a.stage] = a;
      continue;
    }
    sentence& s = refuse(out, 310) << "rank " << rank << " has " << a << ", but stage " << a.stage << " is "
                                   << (sharded ? "sharded" : "gathered") << " there; ";
    if (computes(a.kind)) s << "put " << action{action_kind::unshard, a.stage, 0} << " before it";
    else s << "UNSHARD and RESHARD of a stage alternate, so leave it out";
    return true;
  }
  for (int stage = 0; stage < t.stages(); ++stage)
    if (gathers[stage] && !is_sharded[stage] && t.has_stage(rank, stage)) {
      refuse(out, 310) << "rank " << rank << " leaves stage " << stage << " gathered; put "
                       << action{action_kind::reshard, stage, 0} << " behind " << last[stage];
      return true;
    }
  return false;
}

/// RC303: a rank lacks a REDUCE_GRAD or STEP of a stage although the table has some.
constexpr bool refuse_unsaid(report& out, const action_table& t) {
  std::vector<std::vector<char>> said(static_cast<std::size_t>(t.ranks()));
  bool any = false;
  for (int r = 0; r < t.ranks(); ++r) {
    said[r].assign(static_cast<std::size_t>(2 * t.stages()), 0);
    for (int i = t.begin[r]; i < t.begin[r + 1]; ++i)
      if (const action& a = t.actions[i]; a.kind >= action_kind::reduce_grad)
        said[r][2 * a.stage + (a.kind == action_kind::step)] = any = true;
  }
  if (!any) return false;
  for (int r = 0; r < t.ranks(); ++r)
    for (int k = 0; k < 2 * t.stages(); ++k)
      if (const action a{k % 2 ? action_kind::step : action_kind::reduce_grad, k / 2, 0};
          t.has_stage(r, a.stage) && !said[r][k]) {
        refuse(out, 303) << "rank " << r << " never runs " << a
                         << "; a schedule with any REDUCE_GRAD or STEP needs both for "
                         << "every stage, on each rank that has it";
        return true;
      }
  return false;
}

/// RC303, RC310: refuses the first of these rules that the table breaks. The actions must be in range and on
/// their ranks.
constexpr bool refuse_stage_actions(report& out, const action_table& t) {
  std::vector<char> gathers(static_cast<std::size_t>(t.stages()), 0);
  for (const action& a : t.actions)
    if (a.kind == action_kind::unshard || a.kind == action_kind::reshard) gathers[a.stage] = true;
  for (int r = 0; r < t.ranks(); ++r)
    if (refuse_sharded(out, t, r, gathers) || refuse_behind(out, t, r)) return true;
  return refuse_unsaid(out, t);
}

}  // namespace rankc::detail
