// SPDX-License-Identifier: Apache-2.0
// The times at which the weights of sharded stages are all-gathered and freed.
#pragma once
#include <rankc/mesh/axes.hpp>
#include <rankc/schedule/actions.hpp>

#include <algorithm>
#include <utility>
#include <vector>

namespace rankc {

/// True if the table itself has UNSHARD actions.
constexpr bool says_unshard(const action_table& t) {
  for (const action& a : t.actions)
    if (a.kind == action_kind::unshard) return true;
  return false;
}

namespace detail {

/// The next use of each action's stage on its rank, and the first use of each stage on each rank.
/// Shapes: next (actions); first (ranks x stages).
/// Units: indices into the table's actions; `never` if there is no use.
struct stage_uses {
  static constexpr int never = 1 << 30;
  std::vector<int> next, first;
  constexpr explicit stage_uses(const action_table& t)
      : next(t.actions.size(), never), first(static_cast<std::size_t>(t.ranks()) * t.stages(), never) {
    for (int r = 0; r < t.ranks(); ++r)
      for (int i = t.begin[r + 1]; i-- > t.begin[r];) {
        if (!computes(t.actions[i].kind)) continue;
        int& use = first[r * t.stages() + t.actions[i].stage];
        next[i] = use;
        use = i;
      }
  }
};

}  // namespace detail

/// Inserts an UNSHARD before the first use of each stage on a rank and a RESHARD after its last use. If a
/// rank has more than `most` stages, it also reshards between uses: the `most` stages that it uses soonest
/// stay gathered or are prefetched. An OVERLAP of two stages needs both gathered, whatever `most` is.
/// The table must have no UNSHARD or RESHARD.
constexpr action_table gather_weights(action_table t, int most) {
  struct held {
    int stage, next_use;
    bool gathered = false;
  };
  const detail::stage_uses uses(t);
  const std::vector<action> said = std::move(t.actions);
  t.actions = {};
  int from = 0;
  for (int r = 0; r < t.ranks(); ++r) {
    std::vector<held> stages;
    for (int s = 0; s < t.stages(); ++s)
      if (t.has_stage(r, s)) stages.push_back({s, uses.first[r * t.stages() + s]});
    const auto find = [&](int stage) {
      return std::find_if(stages.begin(), stages.end(), [&](const held& h) { return h.stage == stage; });
    };
    const int end = t.begin[r + 1];
    t.begin[r] = static_cast<int>(t.actions.size());
    const auto gather_for = [&](int needed) {
      std::sort(stages.begin(), stages.end(), [](const held& a, const held& b) {
        return a.next_use != b.next_use ? a.next_use < b.next_use : a.stage < b.stage;
      });
      const auto wanted = [&](const held& h) {
        return h.next_use != uses.never && &h - stages.data() < std::max(most, needed);
      };
      for (const bool gathers : {false, true})
        for (held& h : stages) {
          if (h.gathered == gathers || wanted(h) != gathers) continue;
          t.actions.push_back({gathers ? action_kind::unshard : action_kind::reshard, h.stage, 0});
          h.gathered = gathers;
        }
    };
    while (from < end) {
      const int n = said[from].overlaps_next ? 2 : 1;
      gather_for(n == 2 && said[from].stage != said[from + 1].stage ? 2 : 1);
      for (const int item_end = from + n; from < item_end; ++from) {
        t.actions.push_back(said[from]);
        if (computes(said[from].kind)) find(said[from].stage)->next_use = uses.next[from];
      }
    }
    gather_for(0);
  }
  t.begin.back() = static_cast<int>(t.actions.size());
  return t;
}

/// The table as ranks with these dims run it: with reshard::after_stage, UNSHARD and RESHARD are inserted
/// unless the schedule has UNSHARD itself.
constexpr action_table gather_by_stage(action_table t, const parallel_dims& d) {
  if (!shards_weights(d) || d.reshard != reshard::after_stage || says_unshard(t)) return t;
  return gather_weights(std::move(t), 1 + d.prefetch);
}

/// The actions of an evaluation: the forwards of the step. If the step has UNSHARD, each stage's weights are
/// gathered before its first forward and freed after its last. With reshard::after_stage at most 1 + prefetch
/// stages are gathered at once, otherwise all.
constexpr action_table evaluation_of(const action_table& step, const parallel_dims& d) {
  action_table t = forwards_of(step);
  if (!shards_weights(d) || !says_unshard(step)) return t;
  return gather_weights(std::move(t), d.reshard == reshard::after_stage ? 1 + d.prefetch : t.stages());
}

}  // namespace rankc
