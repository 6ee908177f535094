// SPDX-License-Identifier: Apache-2.0
// The actions of a pipeline schedule: for each rank the actions that it runs, in order. A schedule is a
// struct with
//   int microbatches, stages_per_rank
//   static constexpr std::string_view name
//   rank_of_stage(stage, pp)             the rank of a stage
//   actions(pp, rank, emit)              emits the actions of a rank in order; or, if a rank's order depends
//                                        on other ranks,
//   table(pp)                            the actions of all ranks as an action_table
// and optionally
//   check(report&, pp)                   appends why it is undefined, and the legal alternatives (RC3xx)
//   stages(pp)                           the number of stages, if it is not pp * stages_per_rank
//   as_written                           true: an I and the W after it are not merged into a B
//   inference                            true: forwards only
//   reversed_rank_of_stage(stage, pp)    the second rank of a stage; it runs the microbatches
//   reversed_from()                      from this one on
#pragma once
#include <rankc/base/diagnostic.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

namespace rankc {

/// F forward, B whole backward, I input gradient, W weight gradient: each of one microbatch. The others are
/// of all microbatches of a stage: UNSHARD all-gathers its weights, RESHARD frees the gathered weights,
/// REDUCE_GRAD reduces its gradients over the ranks that also have the stage, and STEP updates its weights.
enum class action_kind : unsigned char { F, B, I, W, unshard, reshard, reduce_grad, step };
inline constexpr std::string_view action_names[]{"F",       "B",       "I",           "W",
                                                 "UNSHARD", "RESHARD", "REDUCE_GRAD", "STEP"};

/// True if the action is of one microbatch.
constexpr bool computes(action_kind k) { return k <= action_kind::W; }

/// One action. `2F0` is the forward of microbatch 0 on stage 2, and `2STEP` is the optimizer step of stage 2,
/// whose microbatch is 0. An action with `overlaps_next` runs concurrently with the next action of its rank,
/// on two streams.
struct action {
  action_kind kind;
  int stage, microbatch;
  bool overlaps_next = false;
  constexpr bool operator==(const action&) const = default;
};

constexpr sentence& operator<<(sentence& s, const action& a) {
  s << a.stage << action_names[static_cast<int>(a.kind)];
  return computes(a.kind) ? s << a.microbatch : s;
}

/// The actions of all pipeline ranks in one list. In a bidirectional schedule every stage is on two ranks:
/// the microbatches from `reversed_from` on run on `reversed_rank_of_stage`.
struct action_table {
  std::vector<action> actions;
  std::vector<int> begin;          // index of each rank's first action, and the end
  std::vector<int> rank_of_stage;  // the rank of each stage
  int microbatches = 0;
  bool inference = false;                        // forwards only
  std::vector<int> reversed_rank_of_stage = {};  // empty: one direction
  int reversed_from = 0;
  constexpr int ranks() const { return static_cast<int>(begin.size()) - 1; }
  constexpr int stages() const { return static_cast<int>(rank_of_stage.size()); }
  constexpr bool bidirectional() const { return !reversed_rank_of_stage.empty(); }
  constexpr int rank_of(int stage, int microbatch) const {
    return bidirectional() && microbatch >= reversed_from ? reversed_rank_of_stage[stage]
                                                          : rank_of_stage[stage];
  }
  /// True if the rank runs microbatches of the stage.
  constexpr bool has_stage(int rank, int stage) const {
    return rank_of_stage[stage] == rank || (bidirectional() && reversed_rank_of_stage[stage] == rank);
  }
  /// The rank that runs the other microbatches of the stage; the rank itself if it runs all.
  constexpr int shares_stage(int rank, int stage) const {
    if (!bidirectional()) return rank;
    return rank_of_stage[stage] == rank ? reversed_rank_of_stage[stage] : rank_of_stage[stage];
  }
};

/// The number of stages that a schedule splits the model into.
template <class Schedule>
constexpr int count_stages(const Schedule& schedule, int pp) {
  if constexpr (requires { schedule.stages(pp); }) return schedule.stages(pp);
  else return pp * schedule.stages_per_rank;
}

/// Collects the actions that a schedule emits for `pp` ranks. `finish(table, rank, first, last)` may insert
/// up to two actions per stage into the actions [first, last) of a rank; it returns their new end.
template <class Schedule>
constexpr action_table collect(const Schedule& schedule, int pp, auto finish) {
  action_table t;
  t.microbatches = schedule.microbatches;
  if constexpr (requires { schedule.inference; }) t.inference = schedule.inference;
  const int stages = count_stages(schedule, pp);
  for (int s = 0; s < stages; ++s) t.rank_of_stage.push_back(schedule.rank_of_stage(s, pp));
  if constexpr (requires { schedule.reversed_from(); }) {
    for (int s = 0; s < stages; ++s)
      t.reversed_rank_of_stage.push_back(schedule.reversed_rank_of_stage(s, pp));
    t.reversed_from = schedule.reversed_from();
  }
  // Actions are written in place because a compiler evaluates push_back slowly. There is room for the F, I
  // and W of every stage and microbatch, and for four more actions per stage.
  action *begin = nullptr, *to = nullptr, *end = nullptr;
  const auto make_room = [&](std::size_t n) {
    const std::size_t used = static_cast<std::size_t>(to - begin);
    t.actions.resize(used + n);
    begin = t.actions.data();
    to = begin + used;
    end = begin + t.actions.size();
  };
  make_room(static_cast<std::size_t>(3 * stages * t.microbatches + 4 * stages + 1));
  for (int r = 0; r < pp; ++r) {
    const std::size_t first = static_cast<std::size_t>(to - begin);
    t.begin.push_back(static_cast<int>(first));
    schedule.actions(pp, r, [&](const action& a) {
      if (to == end) make_room(first + 1024);
      *to++ = a;
    });
    if (end - to < 2 * stages) make_room(static_cast<std::size_t>(2 * stages));
    to = finish(t, r, begin + first, to);
  }
  t.begin.push_back(static_cast<int>(to - begin));
  t.actions.resize(static_cast<std::size_t>(to - begin));
  return t;
}

/// The actions of a schedule on `pp` ranks.
template <class Schedule>
constexpr action_table collect(const Schedule& schedule, int pp) {
  if constexpr (requires { schedule.table(pp); }) return schedule.table(pp);
  else return collect(schedule, pp, [](const action_table&, int, action*, action* last) { return last; });
}

/// The forwards of a schedule, in its order. An evaluation runs them.
constexpr action_table forwards_of(const action_table& all) {
  action_table t = all;
  t.inference = true;
  t.actions.clear();
  t.begin.assign(1, 0);
  for (int r = 0; r < all.ranks(); ++r) {
    for (int i = all.begin[r]; i < all.begin[r + 1]; ++i)
      if (const action& a = all.actions[i]; a.kind == action_kind::F)
        t.actions.push_back({a.kind, a.stage, a.microbatch});
    t.begin.push_back(static_cast<int>(t.actions.size()));
  }
  return t;
}

}  // namespace rankc
