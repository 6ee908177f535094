// SPDX-License-Identifier: Apache-2.0
// List scheduling of a pattern. Each rank runs the next pass of the pattern. If its input is not there, the
// rank runs another pass that is ready and fits into memory. It is one loop over the actions, which a
// compiler can afford.
#pragma once
#include <rankc/schedules/builder/pattern.hpp>

namespace rankc {

/// The passes that a rank may run out of the order of its pattern, when it would wait otherwise.
struct leeway {
  double reserve = 1;      // an early F leaves this fraction of the memory that the function reserve() counts
  bool steady = false;     // no early F after the rank's first backward
  bool backwards = false;  // an I (or B) may be early before the rank's last F, too
  bool patient = false;    // no W that would delay the pass of an input that is being sent
};

/// The number of forwards of a rank's later stages for which memory must be left when an F of a stage runs.
/// It is `share` of the forwards that can come before the first of their backwards, if the rank's stages
/// alternate.
/// Shapes: (stages).
constexpr std::vector<int> reserve(const pipeline_load& load, double share) {
  const int stages = load.stages();
  std::vector<double> turnaround(static_cast<std::size_t>(stages), 0);  // from a stage's F to its backward
  const detail::hops hops(load.rank_of_stage, load.cost.send);
  for (int s = stages - 1; s >= 0; --s) {
    if (s + 1 < stages)
      turnaround[s] =
          hops.down[s] + turnaround[s + 1] + load.cost.of({load.backward(), s + 1, 0}) + hops.up[s + 1];
    turnaround[s] += load.cost.of({action_kind::F, s, 0});
  }
  std::vector<int> room(static_cast<std::size_t>(stages), 0);
  for (int s = stages - load.pp - 1; s >= 0; --s)
    for (int later = s + 1; later < stages; ++later)
      if (load.rank_of_stage[later] == load.rank_of_stage[s]) {
        const double forwards =
            turnaround[later] / (load.stages_per_rank() * load.cost.of({action_kind::F, later, 0}));
        room[s] +=
            std::min(static_cast<int>(share * forwards + 0.999), load.memory_limit / load.stages_per_rank());
      }
  return room;
}

namespace detail {

/// A stage: the costs of its passes, its progress, and the places of its next passes in the pattern.
struct stage_progress {
  int stage = 0, reserve = 0;
  double forward_cost = 0, backward_cost = 0, weight_cost = 0, down = 0, up = 0;
  double forward_turn = 0, backward_turn = 0;
  int forwards = 0, backwards = 0;
};

struct rank_progress {
  double free_at = 0, wake = 0;  // `wake`: the time at which to examine the rank again
  int held = 0, due = 0, forwards = 0, backwards = 0;
  action* end = nullptr;           // end of the rank's actions so far
  const action* weight = nullptr;  // the first of them whose W may be due
};

/// The next pass of a rank. Without a stage nothing is ready, and `arrives` is the time at which to examine
/// the rank again.
struct next_pass {
  stage_progress* stage = nullptr;
  bool forward = false;
  double arrives = std::numeric_limits<double>::infinity();  // the first input in flight
};

/// Simulates all ranks of a pattern at the same time. Its loops use plain pointers, because a compiler runs
/// them for thousands of actions.
class list_scheduler {
  static constexpr double rounding = 1e-9, never = std::numeric_limits<double>::infinity(), waits = -1;

 public:
  constexpr list_scheduler(const pipeline_load& load, const placed_pattern& pattern, const leeway& allowed)
      : load_(load),
        allowed_(allowed),
        interval_(pattern.interval),
        m_(load.microbatches),
        v_(load.stages_per_rank()),
        limit_(load.memory_limit),
        stages_(load.stages()),
        backward_(load.backward()),
        splits_(!load.whole_backward),
        forwards_(static_cast<std::size_t>(stages_ + 1) * m_, never),
        gradients_(forwards_),
        progress_(static_cast<std::size_t>(load.pp)) {
    table_.microbatches = m_;
    table_.rank_of_stage = load.rank_of_stage;
    const int row = (splits_ ? 3 : 2) * v_ * m_;
    table_.actions.assign(static_cast<std::size_t>(load.pp) * row, action{});
    // Inputs before the first stage and after the last are there from the start.
    output_ = forwards_.data() + m_;
    gradient_ = gradients_.data();
    for (int mb = 0; mb < m_; ++mb) output_[mb - m_] = gradient_[stages_ * m_ + mb] = 0;
    add_stages(pattern);
    for (int r = 0; r < load.pp; ++r) {
      table_.begin.push_back(r * row);
      progress_[r].weight = progress_[r].end = table_.actions.data() + r * row;
    }
    table_.begin.push_back(load.pp * row);
  }

  /// Runs the pattern. `begins`, if given, receives the begin of each action. `walk` cannot be used: it runs
  /// a rank as far as data allow, but here a rank chooses its next action by the time and by the results of
  /// the others.
  constexpr action_table run(std::vector<double>* begins) {
    if (begins) begins->assign(table_.actions.size(), 0);
    begin_ = begins ? begins->data() : nullptr;
    for (int left = static_cast<int>(table_.actions.size()); left > 0;) {
      double next = never;
      for (int r = 0; r < load_.pp; ++r) {
        rank_progress& rank = progress_[r];
        if (rank.wake <= now_ + rounding) left -= advance(rank, of_ranks_.data() + r * v_);
        if (rank.wake < next) next = rank.wake;
      }
      if (next == never && left > 0) {
        stuck_ = true;
        for (rank_progress& rank : progress_) rank.wake = now_;
      } else {
        now_ = next;
      }
    }
    return std::move(table_);
  }

 private:
  constexpr void add_stages(const placed_pattern& pattern) {
    const hops hops(load_.rank_of_stage, load_.cost.send);
    const std::vector<int> reserved = reserve(load_, allowed_.reserve);
    for (int r = 0; r < load_.pp; ++r)
      for (int s = 0; s < stages_; ++s)
        if (load_.rank_of_stage[s] == r)
          of_ranks_.push_back({.stage = s,
                               .reserve = reserved[s],
                               .forward_cost = load_.cost.of({action_kind::F, s, 0}),
                               .backward_cost = load_.cost.of({backward_, s, 0}),
                               .weight_cost = load_.cost.of({action_kind::W, s, 0}),
                               .down = hops.down[s],
                               .up = hops.up[s],
                               .forward_turn = pattern.forward[s],
                               .backward_turn = pattern.backward[s]});
  }

  /// The next pass of the pattern, among those that fit into memory. If its input is not there, the first
  /// pass that is ready and may be early.
  constexpr next_pass choose(const rank_progress& rank, stage_progress* first_stage) const {
    const double now = now_ + rounding, *const output = output_,
                 *const gradient = gradient_;  // by stage and microbatch
    const int m = m_, v = v_, limit = limit_;
    const bool early_backward = stuck_ || allowed_.backwards || rank.forwards == v * m;
    const bool early_forward = stuck_ || !allowed_.steady || rank.backwards == 0;
    next_pass turn, early;
    double turn_at = never, turn_input = never, early_at = never, arrives = never;
    int earlier = rank.held;  // microbatches held by this stage and the stages before it
    bool fits = true;
    for (int k = v - 1; k >= 0; --k) {
      stage_progress& s = first_stage[k];
      // Each later stage keeps room for one microbatch, so the oldest microbatch can always run to its end.
      fits = fits && earlier + v - 1 - k < limit;
      if (s.backwards < m) {
        const int cell = s.stage * m + s.backwards;
        double input = never;
        if (s.backwards < s.forwards) {
          input = gradient[cell + m];
          const double made = output[cell] - s.down;
          if (made > input) input = made;
        }
        if (s.backward_turn < turn_at - rounding) {
          turn = {&s, false};
          turn_at = s.backward_turn;
          turn_input = input;
        }
        if (input > now) {
          if (input < arrives) arrives = input;
        } else if (early_backward && s.backward_turn < early_at - rounding) {
          early = {&s, false};
          early_at = s.backward_turn;
        }
      }
      if (s.forwards < m) {
        const double input = output[s.stage * m + s.forwards - m];
        if (input > now && input < arrives) arrives = input;
        if (fits) {
          if (s.forward_turn < turn_at - rounding) {
            turn = {&s, true};
            turn_at = s.forward_turn;
            turn_input = input;
          }
          const bool room = stuck_ || s.forwards - s.backwards + s.reserve < limit;
          if (input <= now && early_forward && room && s.forward_turn < early_at - rounding) {
            early = {&s, true};
            early_at = s.forward_turn;
          }
        }
      }
      earlier -= s.forwards - s.backwards;
    }
    next_pass chosen = turn_input <= now ? turn : early;
    chosen.arrives = arrives;
    return chosen;
  }

  /// Runs a rank's next action and sets the time at which to examine the rank again. Returns true if there
  /// was an action.
  constexpr bool advance(rank_progress& rank, stage_progress* first_stage) {
    const next_pass next = choose(rank, first_stage);
    double took = waits;
    if (next.stage) took = run_pass(rank, *next.stage, next.forward);
    else if (rank.due > 0) took = run_weight(rank, first_stage, next.arrives);
    if (took == waits) {
      rank.wake = next.arrives;
      return false;
    }
    if (begin_) begin_[rank.end - table_.actions.data() - 1] = now_;
    stuck_ = false;
    rank.wake = rank.free_at = now_ + took;
    return true;
  }

  constexpr double run_pass(rank_progress& rank, stage_progress& s, bool forward) {
    const int mb = forward ? s.forwards : s.backwards, to = forward ? s.stage + 1 : s.stage - 1;
    *rank.end++ = {forward ? action_kind::F : backward_, s.stage, mb};
    const double took = forward ? s.forward_cost : s.backward_cost,
                 there = now_ + took + (forward ? s.down : s.up);
    (forward ? output_ : gradient_)[s.stage * m_ + mb] = there;
    if (to >= 0 && to < stages_)
      if (rank_progress& other = progress_[load_.rank_of_stage[to]]; there < other.wake)
        other.wake = there > other.free_at ? there : other.free_at;
    if (forward) {
      ++s.forwards;
      ++rank.forwards;
      ++rank.held;
      s.forward_turn += interval_;
    } else {
      ++s.backwards;
      ++rank.backwards;
      s.backward_turn += interval_;
      if (splits_) ++rank.due;
      else --rank.held;
    }
    return took;
  }

  /// Runs the oldest W that is due, or waits for an input in flight.
  constexpr double run_weight(rank_progress& rank, const stage_progress* s, double arrives) {
    while (rank.weight->kind != action_kind::I) ++rank.weight;
    while (s->stage != rank.weight->stage) ++s;
    if (allowed_.patient && arrives < now_ + s->weight_cost - rounding && rank.held < limit_) return waits;
    *rank.end++ = {action_kind::W, s->stage, rank.weight++->microbatch};
    --rank.due;
    --rank.held;
    return s->weight_cost;
  }

  const pipeline_load& load_;
  const leeway& allowed_;
  const double interval_;
  const int m_, v_, limit_, stages_;
  const action_kind backward_;
  const bool splits_;
  std::vector<double> forwards_, gradients_;  // the time at which each result is where it is used
  double *output_ = nullptr, *gradient_ = nullptr, *begin_ = nullptr;
  std::vector<rank_progress> progress_;
  std::vector<stage_progress> of_ranks_;
  action_table table_;
  bool stuck_ = false;  // passes are ready, but none in its turn
  double now_ = 0;
};

}  // namespace detail

/// The list schedule of a pattern, with its W, within the load's memory. `begins`, if given, receives the
/// begins of its actions.
/// Errors: an empty table if the limit is below stages_per_rank, which one microbatch needs.
constexpr action_table list_schedule(const pipeline_load& load, const placed_pattern& pattern,
                                     const leeway& allowed, std::vector<double>* begins = nullptr) {
  if (load.memory_limit < load.stages_per_rank()) return {};
  return detail::list_scheduler(load, pattern, allowed).run(begins);
}

}  // namespace rankc
