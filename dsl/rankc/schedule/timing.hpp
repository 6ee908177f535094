// SPDX-License-Identifier: Apache-2.0
// The times of a schedule's actions, and the totals: makespan, bubble, activations, and a lower bound for any
// schedule.
#pragma once
#include <rankc/schedule/costs.hpp>
#include <rankc/schedule/placement.hpp>
#include <rankc/schedule/reductions.hpp>
#include <rankc/schedule/walk.hpp>

#include <algorithm>
#include <vector>

namespace rankc {

/// The totals of a schedule.
/// Shapes: (ranks).
/// Units: of the costs; bubbles are fractions of time without work, 0..1; activations are microbatches of one
/// stage, held from F to the end of B or W.
struct totals {
  double makespan = 0;
  double bubble = 0;         // idle time of all ranks, as a fraction of the makespan
  double window_bubble = 0;  // for the worst rank, from its first action to its last
  std::vector<double> bubble_per_rank;
  std::vector<int> peak_activations;
  constexpr int peak() const { return *std::max_element(peak_activations.begin(), peak_activations.end()); }
};

/// The times of a schedule's actions.
/// Shapes: (actions of the table).
/// Units: of the costs.
struct timing : totals {
  std::vector<double> begin, end;
};

namespace detail {

/// The state of a rank while its actions are timed.
struct rank_clock {
  double first = 0, free_at = 0, busy = 0;
  int held = 0, peak = 0;
};

/// The work that overlaps the ranks' computation: all-gathers of weights, in each rank's order, and
/// reductions of gradients.
struct beside_computation {
  const action_table& table;
  const costs& cost;
  double* const begin_of;
  double* const end_of;
  reductions reduced;
  std::vector<double> gathered;     // by rank and stage: the time; empty without all-gathers
  std::vector<double> gather_free;  // by rank

  constexpr beside_computation(const action_table& t, const costs& c, double* begin, double* end)
      : table(t), cost(c), begin_of(begin), end_of(end), reduced(t) {}

  constexpr void record(int i, double begin, double end) {
    if (begin_of) {
      begin_of[i] = begin;
      end_of[i] = end;
    }
  }

  /// Called when a rank reaches action `i`, an action of a whole stage. Returns true if it can run.
  constexpr bool run(int rank, int i, rank_clock& clock) {
    const action& a = table.actions[i];
    const double takes = cost.of(a);
    if (a.kind == action_kind::reduce_grad) {
      reduced.reach(rank, {a.stage, i, clock.free_at, takes},
                    [&](int action, double begin, double end) { record(action, begin, end); });
    } else if (a.kind == action_kind::step) {
      if (reduced.left > 0) return false;
      const double begin = std::max(clock.free_at, reduced.end);
      record(i, begin, clock.free_at = begin + takes);
      clock.busy += takes;
    } else if (a.kind == action_kind::unshard) {
      if (gathered.empty()) {
        gathered.assign(static_cast<std::size_t>(table.ranks()) * table.stages(), 0);
        gather_free.assign(static_cast<std::size_t>(table.ranks()), 0);
      }
      const double begin = std::max(clock.free_at, gather_free[rank]);
      record(i, begin, gathered[rank * table.stages() + a.stage] = gather_free[rank] = begin + takes);
    } else {
      record(i, clock.free_at, clock.free_at);
    }
    return true;
  }
};

/// The time that a stage's result takes to the stage that uses it, for the microbatches of one direction: the
/// output of a forward to the next stage, the gradient of a backward to the previous stage.
struct hops {
  std::vector<double> down, up;
  constexpr hops(const std::vector<int>& rank_of, double send)
      : down(rank_of.size(), 0), up(rank_of.size(), 0) {
    for (std::size_t s = 1; s < rank_of.size(); ++s)
      if (rank_of[s] != rank_of[s - 1]) down[s - 1] = up[s] = send;
  }
};

constexpr totals sum_up(const std::vector<rank_clock>& clocks) {
  totals out;
  double work = 0;
  for (const rank_clock& c : clocks) {
    out.makespan = std::max(out.makespan, c.free_at);
    work += c.busy;
  }
  for (const rank_clock& c : clocks) {
    out.peak_activations.push_back(c.peak);
    out.bubble_per_rank.push_back(out.makespan > 0 ? 1 - c.busy / out.makespan : 0);
    if (c.free_at > c.first)
      out.window_bubble = std::max(out.window_bubble, 1 - c.busy / (c.free_at - c.first));
  }
  out.bubble = out.makespan > 0 ? 1 - work / (out.makespan * static_cast<double>(clocks.size())) : 0;
  return out;
}

/// The max-plus solution. `deliver(action, done)` returns when the next stage receives the result of an F, B
/// or I. If `begin_of` and `end_of` are given, they receive the times of each action. A compiler runs this
/// for hundreds of thousands of actions, like check_actions: plain pointers, and two calls for each action.
template <class Deliver>
class solver {
 public:
  constexpr solver(const action_table& t, const costs& c, double* begin_of, double* end_of, Deliver deliver)
      : table_(t),
        deliver_(deliver),
        stages_(t.stages()),
        microbatches_(t.microbatches),
        begin_of_(begin_of),
        end_of_(end_of),
        forwards_(static_cast<std::size_t>(stages_ + 1) * microbatches_, -1),
        gradients_(forwards_),
        output_(forwards_.data() + microbatches_),
        gradient_(gradients_.data()),
        clocks_(static_cast<std::size_t>(t.ranks())),
        cost_of_{c.of(action_kind::F), c.of(action_kind::B), c.of(action_kind::I), c.of(action_kind::W)},
        stage_factor_(c.stage.empty() ? nullptr : c.stage.data()),
        again_(c.again.empty() ? nullptr : c.again.data()),
        overlap_(c.overlap),
        beside_(t, c, begin_of, end_of) {
    for (int mb = 0; mb < microbatches_; ++mb)
      output_[mb - microbatches_] = gradient_[stages_ * microbatches_ + mb] = 0;
  }

  constexpr totals run() {
    walk(table_.begin, [this](int r, int i) { return run_rank(r, i); });
    return sum_up(clocks_);
  }

 private:
  /// Runs a rank's actions from `i` on, as far as their inputs are known. Returns the first that did not run.
  constexpr int run_rank(int r, int i) {
    rank_clock clock = clocks_[r];
    double begin = clock.free_at, took = 0;
    const int end = table_.begin[r + 1], m = microbatches_;
    for (const action* a = table_.actions.data() + i; i != end; ++a) {
      const int s = a->stage, cell = s * m + a->microbatch;
      if (a->kind > action_kind::W) {
        if (!beside_.run(r, i, clock)) break;
        if (!beside_.gathered.empty()) gathered_ = beside_.gathered.data();
        begin = clock.free_at;
        ++i;
        continue;
      }
      if (gathered_ && gathered_[r * stages_ + s] > begin) begin = gathered_[r * stages_ + s];
      if (a->kind != action_kind::W) {  // a W's input is its rank's own
        const double input = a->kind == action_kind::F ? output_[cell - m] : gradient_[cell + m];
        if (input < 0) break;
        if (input > begin) begin = input;
      }
      const double cost = cost_of_[static_cast<int>(a->kind)];
      took += stage_factor_ ? cost * stage_factor_[s] : cost;
      if (again_ && (a->kind == action_kind::B || a->kind == action_kind::I)) took += again_[s];
      if (a->overlaps_next) continue;
      const int last = static_cast<int>(a - table_.actions.data());
      if (last != i) took *= overlap_;
      finish(clock, i, last, begin, took);
      i = last + 1;
      begin = clock.free_at;
      took = 0;
    }
    clocks_[r] = clock;
    return i;
  }

  /// Finishes the actions from `i` to `last`, one or the two halves of an OVERLAP.
  constexpr void finish(rank_clock& clock, int i, int last, double begin, double took) {
    const double done = begin + took;
    int freed = 0;
    for (; i <= last; ++i) {
      const action& a = table_.actions[i];
      if (begin_of_) {
        begin_of_[i] = begin;
        end_of_[i] = done;
      }
      const int cell = a.stage * microbatches_ + a.microbatch;
      if (a.kind == action_kind::F) {
        output_[cell] = deliver_(a, done);
        ++clock.held;
        freed += table_.inference;
        continue;
      }
      if (a.kind != action_kind::W) gradient_[cell] = deliver_(a, done);
      freed += a.kind != action_kind::I;
    }
    if (clock.busy == 0) clock.first = begin;
    if (clock.held > clock.peak) clock.peak = clock.held;
    clock.held -= freed;
    clock.busy += took;
    clock.free_at = done;
  }

  const action_table& table_;
  Deliver deliver_;
  const int stages_, microbatches_;
  double *const begin_of_, *const end_of_;
  // The time at which each result is where it is used; -1: not yet. Inputs before the first stage and after
  // the last are there from the start.
  std::vector<double> forwards_, gradients_;
  double *const output_, *const gradient_;
  std::vector<rank_clock> clocks_;
  const double cost_of_[4];
  const double *const stage_factor_, *const again_;
  const double overlap_;
  beside_computation beside_;
  const double* gathered_ = nullptr;  // by rank and stage
};

constexpr totals solve(const action_table& t, const costs& c, double* begin_of, double* end_of,
                       auto deliver) {
  return solver(t, c, begin_of, end_of, deliver).run();
}

/// The solution if messages do not wait for one another.
constexpr totals solve(const action_table& t, const costs& c, double* begin_of, double* end_of) {
  const hops one_way(t.rank_of_stage, c.send), reversed(t.reversed_rank_of_stage, c.send);
  const int reversed_from = t.bidirectional() ? t.reversed_from : t.microbatches;
  return solve(t, c, begin_of, end_of, [&](const action& a, double done) {
    const hops& to = a.microbatch < reversed_from ? one_way : reversed;
    return done + (a.kind == action_kind::F ? to.down : to.up).data()[a.stage];
  });
}

}  // namespace detail

/// The totals of the schedule, without the times of its actions. It needs a third of the compile time. The
/// table must pass check_actions.
constexpr totals total(const action_table& t, const costs& c = {}) {
  return detail::solve(t, c, nullptr, nullptr);
}

/// The earliest time of each action, given the order on every rank and the data: the max-plus solution. The
/// halves of an OVERLAP begin together, when both have their inputs, and end together. The table must pass
/// check_actions.
constexpr timing time(const action_table& t, const costs& c = {}) {
  timing out;
  out.begin.assign(t.actions.size(), 0);
  out.end.assign(t.actions.size(), 0);
  static_cast<totals&>(out) = detail::solve(t, c, out.begin.data(), out.end.data());
  return out;
}

/// A lower bound of the makespan for every order of the table's actions, given the placement of its stages. A
/// rank cannot begin before a microbatch can have reached it, and must then do its own work. One microbatch
/// must go down and up again.
/// Units: of the costs.
constexpr double lower_bound(const action_table& t, const costs& c = {}) {
  const double gain = std::min(1.0, c.overlap);  // at best everything overlaps
  const int directions = t.bidirectional() ? 2 : 1;
  const int forward_only[]{t.microbatches, 0};
  const int both[]{t.reversed_from, t.microbatches - t.reversed_from};
  std::vector<double> first(t.begin.size(), -1), work(t.begin.size(), 0);  // by rank
  double longest = 0;
  for (int d = 0; d < directions; ++d) {
    const int microbatches = (t.bidirectional() ? both : forward_only)[d];
    if (microbatches == 0) continue;
    const std::vector<int>& rank_of = d ? t.reversed_rank_of_stage : t.rank_of_stage;
    double reaches = 0, path = 0;
    for (int s = 0; s < t.stages(); ++s) {
      const bool hop = s > 0 && rank_of[s] != rank_of[s - 1];
      if (hop) reaches += c.send;
      double& earliest = first[rank_of[s]];
      if (earliest < 0 || reaches < earliest) earliest = reaches;
      const double f = gain * c.of({action_kind::F, s, 0}),
                   i = t.inference ? 0 : gain * c.of({action_kind::I, s, 0}),
                   w = t.inference ? 0 : gain * c.of({action_kind::W, s, 0});
      reaches += f;
      path += i + (hop && !t.inference ? c.send : 0) + (s == 0 ? w : 0);  // the way up ends with stage 0's W
      work[rank_of[s]] += microbatches * (f + i + w);
    }
    longest = std::max(longest, reaches + path);
  }
  for (int r = 0; r < t.ranks(); ++r) longest = std::max(longest, std::max(0.0, first[r]) + work[r]);
  return longest;
}

/// The bound for `stages_per_rank` stages on each of `pp` ranks. Stages 0 to pp - 1 are on the ranks in
/// order, as in loop and V placements.
/// Units: of the costs.
constexpr double lower_bound(int pp, int stages_per_rank, int microbatches, const costs& c = {}) {
  action_table t;
  t.microbatches = microbatches;
  t.begin.assign(static_cast<std::size_t>(pp) + 1, 0);
  for (int s = 0; s < pp * stages_per_rank; ++s)  // a V placement has the fewest messages
    t.rank_of_stage.push_back(v_placement(s, pp));
  return lower_bound(t, c);
}

}  // namespace rankc
