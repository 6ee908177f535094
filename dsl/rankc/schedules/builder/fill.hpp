// SPDX-License-Identifier: Apache-2.0
// Runs an order of forwards and backwards over time, under costs and a memory limit. Weight gradients fill
// the waits of a rank.
#pragma once
#include <rankc/schedule/timing.hpp>
#include <rankc/schedule/walk.hpp>

#include <limits>

namespace rankc {

/// The conditions for which a schedule is built.
/// Shapes: `rank_of_stage` (stages).
/// Units: `memory_limit` in microbatches of one stage that a rank holds, as in totals::peak_activations.
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

/// The result of running an order.
/// Shapes: vectors (actions of the order).
/// Units: of the costs.
struct timeline {
  double makespan = std::numeric_limits<double>::infinity();  // infinity: it does not run to the end
  double sum_of_ends = 0;
  std::vector<double> input, idle;  // time at which its input is there; time that its rank then waited
  std::vector<int> held;            // microbatches held by the rank before the action

  /// True if it ends sooner or, at the same time, waits less.
  constexpr bool better_than(const timeline& other) const {
    constexpr double rounding = 1e-9;
    if (makespan < other.makespan - rounding) return true;
    return makespan < other.makespan + rounding && sum_of_ends < other.sum_of_ends - rounding;
  }
};

namespace detail {
/// Runs an order once, rank by rank, as far as each rank can.
class filler {
 public:
  constexpr filler(const pipeline_load& load, action_table& order, bool eagerly, action* out)
      : load_(load),
        order_(order),
        eagerly_(eagerly),
        hops_(load.rank_of_stage, load.cost.send),
        ranks_(static_cast<std::size_t>(load.pp)),
        forwards_(static_cast<std::size_t>(load.stages() + 1) * load.microbatches, -1),
        gradients_(forwards_),
        actions_(order.actions.data()),
        forward_end_(forwards_.data() + load.microbatches),
        gradient_end_(gradients_.data()) {
    const int m = load.microbatches;
    for (int mb = 0; mb < m; ++mb) forward_end_[mb - m] = gradient_end_[load.stages() * m + mb] = 0;
    line_.input.assign(order.actions.size(), 0);
    line_.idle = line_.input;
    line_.held.assign(order.actions.size(), 0);
    for (int r = 0; r < load.pp; ++r) {
      ranks_[r].next_weight = order.begin[r];
      if (out) ranks_[r].out = out + (load.whole_backward ? order.begin[r] : order.begin[r] / 2 * 3);
    }
  }

  constexpr timeline run() {
    const std::vector<int> reached = walk(order_.begin, [&](int r, int i) {
      return is_stuck_ ? i : run_rank(ranks_[r], i, order_.begin[r + 1]);
    });
    for (int r = 0; r < load_.pp; ++r)
      if (reached[r] != order_.begin[r + 1]) return line_;
    line_.makespan = 0;
    for (const rank_state& r : ranks_) line_.makespan = std::max(line_.makespan, r.clock);
    return line_;
  }

 private:
  static constexpr double rounding = 1e-9;
  struct rank_state {
    double clock = 0;
    int next_weight = 0, due = 0,
        held = 0;  // the action whose W is next; number of W that may run; microbatches in memory
    action* out = nullptr;
  };

  constexpr int run_rank(rank_state& r, int i, int end) {
    for (; i < end; ++i) {
      if (actions_[i].kind == action_kind::F && r.held >= load_.memory_limit && r.due == 0 &&
          !pull_backward(i, end))
        break;
      const double input = input_of(actions_[i]);
      if (input < 0) break;
      fill_wait(r, input);
      while (actions_[i].kind == action_kind::F && r.held >= load_.memory_limit) run_weight(r);
      line_.input[i] = input;
      line_.idle[i] = input - r.clock;
      line_.held[i] = r.held;
      run_action(r, actions_[i], input);
    }
    if (i == end)
      while (r.due > 0) run_weight(r);
    return i;
  }
  /// Moves the next backward whose forward has run before the F at i. If there is none, nothing can run.
  constexpr bool pull_backward(int i, int end) {
    const auto waits = [&](const action& b) {
      return b.kind == action_kind::F || forward_end_[b.stage * load_.microbatches + b.microbatch] < 0;
    };
    int j = i + 1;
    while (j < end && waits(actions_[j])) ++j;
    is_stuck_ = j == end;
    if (!is_stuck_) std::rotate(actions_ + i, actions_ + j, actions_ + j + 1);
    return !is_stuck_;
  }
  /// The time at which the input of an action is on its rank; -1: not yet.
  constexpr double input_of(const action& a) const {
    const int cell = a.stage * load_.microbatches + a.microbatch;
    if (a.kind == action_kind::F) {
      const double made = forward_end_[cell - load_.microbatches];
      return made < 0 || a.stage == 0 ? made : made + hops_.down[a.stage - 1];
    }
    const double made = gradient_end_[cell + load_.microbatches], own = forward_end_[cell];
    if (made < 0 || own < 0) return -1;
    return std::max(own, a.stage + 1 < load_.stages() ? made + hops_.up[a.stage + 1] : made);
  }
  /// Runs the due W before an input arrives.
  constexpr void fill_wait(rank_state& r, double input) {
    while (r.due > 0 && input > r.clock + rounding &&
           (eagerly_ || input - r.clock > weight_cost(r) - rounding))
      run_weight(r);
  }
  constexpr double weight_cost(rank_state& r) const {
    while (actions_[r.next_weight].kind != action_kind::I) ++r.next_weight;
    return load_.cost.of({action_kind::W, actions_[r.next_weight].stage, 0});
  }
  constexpr void run_weight(rank_state& r) {
    r.clock += weight_cost(r);
    line_.sum_of_ends += r.clock;
    const action& of = actions_[r.next_weight++];
    if (r.out) *r.out++ = {action_kind::W, of.stage, of.microbatch};
    --r.due;
    --r.held;
  }
  constexpr void run_action(rank_state& r, const action& a, double input) {
    const bool forward = a.kind == action_kind::F;
    r.clock = std::max(r.clock, input) + load_.cost.of(a);
    line_.sum_of_ends += r.clock;
    (forward ? forward_end_ : gradient_end_)[a.stage * load_.microbatches + a.microbatch] = r.clock;
    if (forward) ++r.held;
    else if (load_.whole_backward) --r.held;
    else ++r.due;
    if (r.out) *r.out++ = a;
  }

  const pipeline_load& load_;
  action_table& order_;
  const bool eagerly_;
  const hops hops_;
  timeline line_;
  std::vector<rank_state> ranks_;
  std::vector<double> forwards_, gradients_;  // the ends, as in solve; -1: not yet
  action* const actions_;
  double *const forward_end_, *const gradient_end_;
  bool is_stuck_ = false;  // memory is full, and no backward can free any
};
}  // namespace detail

/// Runs an order of F and I (or B) of all ranks. A rank fills waits with the W that are due: any wait if
/// `eagerly`, otherwise only waits that are at least as long as a W. If memory is full, the next backward
/// moves before the F, which changes `order`. If `out` is given, it receives all actions, with W, rank after
/// rank.
constexpr timeline fill(const pipeline_load& load, action_table& order, bool eagerly, action* out = nullptr) {
  return detail::filler(load, order, eagerly, out).run();
}

/// The table of all actions after `fill` has run an order.
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
