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
/// or I. If `begin_of` and `end_of` are given, they receive the times of each action.
constexpr totals solve(const action_table& t, const costs& c, double* begin_of, double* end_of,
                       auto deliver) {
  // A compiler runs this for hundreds of thousands of actions, like check_actions: plain pointers and no
  // calls.
  const int stages = t.stages(), m = t.microbatches;
  // The time at which each result is where it is used; -1: not yet. Inputs before the first stage and after
  // the last are there from the start.
  std::vector<double> forwards(static_cast<std::size_t>(stages + 1) * m, -1), gradients = forwards;
  double* const output = forwards.data() + m;
  double* const gradient = gradients.data();
  for (int mb = 0; mb < m; ++mb) output[mb - m] = gradient[stages * m + mb] = 0;
  std::vector<rank_clock> clocks(static_cast<std::size_t>(t.ranks()));
  const double cost_of[]{c.of(action_kind::F), c.of(action_kind::B), c.of(action_kind::I),
                         c.of(action_kind::W)};
  const double* const stage_factor = c.stage.empty() ? nullptr : c.stage.data();
  const double* const again = c.again.empty() ? nullptr : c.again.data();
  beside_computation beside(t, c, begin_of, end_of);
  const double* gathered = nullptr;  // by rank and stage
  walk(t.begin, [&](int r, int i) {
    rank_clock clock = clocks[r];
    double begin = clock.free_at, took = 0;
    const int end = t.begin[r + 1];
    for (const action* a = t.actions.data() + i; i != end; ++a) {
      const int s = a->stage, cell = s * m + a->microbatch;
      if (a->kind > action_kind::W) {
        if (!beside.run(r, i, clock)) break;
        if (!beside.gathered.empty()) gathered = beside.gathered.data();
        begin = clock.free_at;
        ++i;
        continue;
      }
      if (gathered && gathered[r * stages + s] > begin) begin = gathered[r * stages + s];
      if (a->kind != action_kind::W) {  // a W's input is its rank's own
        const double input = a->kind == action_kind::F ? output[cell - m] : gradient[cell + m];
        if (input < 0) break;
        if (input > begin) begin = input;
      }
      const double cost = cost_of[static_cast<int>(a->kind)];
      took += stage_factor ? cost * stage_factor[s] : cost;
      if (again && (a->kind == action_kind::B || a->kind == action_kind::I)) took += again[s];
      if (a->overlaps_next) continue;
      const int n = a - t.actions.data() == i ? 1 : 2;
      if (n == 2) took *= c.overlap;
      const double done = begin + took;
      int freed = 0;
      for (const action* each = a + 1 - n; each <= a; ++each, ++i) {
        if (begin_of) {
          begin_of[i] = begin;
          end_of[i] = done;
        }
        if (each->kind == action_kind::F) {
          output[each->stage * m + each->microbatch] = deliver(*each, done);
          ++clock.held;
          freed += t.inference;
        } else {
          if (each->kind != action_kind::W)
            gradient[each->stage * m + each->microbatch] = deliver(*each, done);
          freed += each->kind != action_kind::I;
        }
      }
      if (clock.busy == 0) clock.first = begin;
      if (clock.held > clock.peak) clock.peak = clock.held;
      clock.held -= freed;
      clock.busy += took;
      clock.free_at = begin = done;
      took = 0;
    }
    clocks[r] = clock;
    return i;
  });
  return sum_up(clocks);
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
