// SPDX-License-Identifier: Apache-2.0
// An order of forwards and backwards over time, under costs and a memory limit, with gradients of weights
// where a rank would wait.
#pragma once
#include <rankc/schedule/timing.hpp>
#include <rankc/schedule/walk.hpp>

#include <limits>

namespace rankc {

/// What a schedule is built for.
/// Shapes: `rank_of_stage` (stages). Units: `memory_limit` in microbatches of one stage that a rank holds, as
/// totals::peak_activations.
struct pipeline_load {
  int pp = 1, microbatches = 1;
  std::vector<int> rank_of_stage = {};
  costs cost = {};
  int memory_limit = std::numeric_limits<int>::max();
  bool whole_backward = false;  // B instead of I and W

  constexpr int stages() const { return static_cast<int>(rank_of_stage.size()); }
  constexpr int stages_per_rank() const { return stages() / pp; }
  constexpr action_kind backward() const { return whole_backward ? action_kind::B : action_kind::I; }
};

/// How an order went.
/// Shapes: vectors (actions of the order). Units: of the costs.
struct timeline {
  double makespan = std::numeric_limits<double>::infinity();  // it does not run to the end
  double sum_of_ends = 0;
  std::vector<double> input, idle;  // when its input is there, and for how long its rank then waited for it
  std::vector<int> held;            // before it, by its rank

  /// Sooner done or, at the same time, with less waiting on the way.
  constexpr bool better_than(const timeline& other) const {
    constexpr double rounding = 1e-9;
    if (makespan < other.makespan - rounding) return true;
    return makespan < other.makespan + rounding && sum_of_ends < other.sum_of_ends - rounding;
  }
};

/// Run an order of F and I (or B) of all ranks. A rank fills waits with the W that are due: any wait where
/// `eagerly`, else those that hold a whole W. Where memory is full the next backward goes before the F:
/// `order` is changed then. All actions, with W, are written to `out` if it is given, rank after rank.
constexpr timeline fill(const pipeline_load& load, action_table& order, bool eagerly, action* out = nullptr) {
  constexpr double rounding = 1e-9;
  const int stages = load.stages(), m = load.microbatches, limit = load.memory_limit;
  const bool split = !load.whole_backward;
  timeline line;
  line.input.assign(order.actions.size(), 0);
  line.idle = line.input;
  line.held.assign(order.actions.size(), 0);
  // As in detail::solve: -1 is not yet, and all is there before the first stage and after the last.
  std::vector<double> forwards(static_cast<std::size_t>(stages + 1) * m, -1), gradients = forwards;
  double* const forward_end = forwards.data() + m;
  double* const gradient_end = gradients.data();
  for (int mb = 0; mb < m; ++mb) forward_end[mb - m] = gradient_end[stages * m + mb] = 0;
  const detail::hops hops(load.rank_of_stage, load.cost.send);
  std::vector<double> free_at(static_cast<std::size_t>(load.pp), 0);
  std::vector<int> next_weight = order.begin, due(free_at.size(), 0), held = due, written = due;
  action* const actions = order.actions.data();

  bool is_stuck = false;  // memory is full, and no backward can free some
  const std::vector<int> reached = detail::walk(order.begin, [&](int r, int i) {
    if (is_stuck) return i;
    const int end = order.begin[r + 1];
    double clock = free_at[r];
    const int begin = split ? order.begin[r] / 2 * 3 : order.begin[r];
    action* row = out ? out + begin + written[r] : nullptr;
    action* const row_begin = row;
    auto weight_cost = [&] {
      while (actions[next_weight[r]].kind != action_kind::I) ++next_weight[r];
      return load.cost.of({action_kind::W, actions[next_weight[r]].stage, 0});
    };
    auto run_weight = [&] {
      clock += weight_cost();
      line.sum_of_ends += clock;
      if (row) *row++ = {action_kind::W, actions[next_weight[r]].stage, actions[next_weight[r]].microbatch};
      ++next_weight[r];
      --due[r];
      --held[r];
    };
    for (; i < end; ++i) {
      if (actions[i].kind == action_kind::F && held[r] >= limit && due[r] == 0) {
        int j = i + 1;
        auto waits = [&](const action& b) {
          return b.kind == action_kind::F || forward_end[b.stage * m + b.microbatch] < 0;
        };
        while (j < end && waits(actions[j])) ++j;
        is_stuck = j == end;
        if (is_stuck) break;
        std::rotate(actions + i, actions + j, actions + j + 1);
      }
      const action a = actions[i];
      const int cell = a.stage * m + a.microbatch;
      const bool forward = a.kind == action_kind::F;
      const double made = forward ? forward_end[cell - m] : gradient_end[cell + m];
      if (made < 0 || (!forward && forward_end[cell] < 0)) break;
      double input = made;
      if (forward && a.stage > 0) input += hops.down[a.stage - 1];
      if (!forward && a.stage + 1 < load.stages()) input += hops.up[a.stage + 1];
      if (!forward) input = std::max(input, forward_end[cell]);
      while (due[r] > 0 && input > clock + rounding && (eagerly || input - clock > weight_cost() - rounding))
        run_weight();
      while (forward && held[r] >= limit) run_weight();
      line.input[i] = input;
      line.idle[i] = input - clock;
      line.held[i] = held[r];
      clock = std::max(clock, input) + load.cost.of(a);
      line.sum_of_ends += clock;
      (forward ? forward_end : gradient_end)[cell] = clock;
      if (forward) ++held[r];
      else if (split) ++due[r];
      else --held[r];
      if (row) *row++ = a;
    }
    if (i == end)
      while (due[r] > 0) run_weight();
    free_at[r] = clock;
    written[r] += static_cast<int>(row - row_begin);
    return i;
  });
  for (int r = 0; r < load.pp; ++r)
    if (reached[r] != order.begin[r + 1]) return line;
  line.makespan = *std::max_element(free_at.begin(), free_at.end());
  return line;
}

/// The table of all actions that `fill` makes of an order.
constexpr action_table filled(const pipeline_load& load, const action_table& as_ordered, bool eagerly) {
  action_table order = as_ordered;  // fill may change it
  action_table t = order;
  if (!load.whole_backward) {
    t.actions.assign(order.actions.size() / 2 * 3, action{});
    for (int& b : t.begin) b = b / 2 * 3;
  }
  fill(load, order, eagerly, t.actions.data());
  return t;
}

}  // namespace rankc
