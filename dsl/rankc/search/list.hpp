// SPDX-License-Identifier: Apache-2.0
// List scheduling of a pattern: each rank takes what the pattern has next, and where that is not there yet what is,
// within its memory. One pass over the actions, so that a compiler can afford it.
#pragma once
#include <rankc/search/pattern.hpp>

namespace rankc {

/// How far a rank leaves its pattern while it would wait.
struct leeway {
  double reserve = 1;      // an F ahead of its turn leaves this share of what `reserve` says
  bool steady = false;     // no F ahead of its turn after the rank's first backward
  bool backwards = false;  // I (or B) ahead of their turn before the rank's last F, too
  bool patient = false;    // no W that an input that is on its way would wait for
};

/// Forwards of a rank's later stages that memory has room for when an F of a stage runs: `share` of those that can come
/// before the first of their backwards, if the rank's stages take turns.
/// Shapes: (stages).
constexpr std::vector<int> reserve(const pipeline_load& load, double share) {
  const int stages = load.stages();
  std::vector<double> turnaround(static_cast<std::size_t>(stages), 0);  // from a stage's F to its backward
  const detail::hops hops(load.rank_of_stage, load.cost.send);
  for (int s = stages - 1; s >= 0; --s) {
    if (s + 1 < stages)
      turnaround[s] = hops.down[s] + turnaround[s + 1] + load.cost.of({load.backward(), s + 1, 0}) + hops.up[s + 1];
    turnaround[s] += load.cost.of({action_kind::F, s, 0});
  }
  std::vector<int> room(static_cast<std::size_t>(stages), 0);
  for (int s = stages - load.pp - 1; s >= 0; --s)
    for (int later = s + 1; later < stages; ++later)
      if (load.rank_of_stage[later] == load.rank_of_stage[s]) {
        const double forwards = turnaround[later] / (load.stages_per_rank() * load.cost.of({action_kind::F, later, 0}));
        room[s] += std::min(static_cast<int>(share * forwards + 0.999), load.memory_limit / load.stages_per_rank());
      }
  return room;
}

namespace detail {

/// A stage: what its passes take, what it has done, and when the pattern has its next passes.
struct stage_progress {
  int stage = 0, reserve = 0;
  double forward_cost = 0, backward_cost = 0, weight_cost = 0, down = 0, up = 0;
  double forward_turn = 0, backward_turn = 0;
  int forwards = 0, backwards = 0;
};

struct rank_progress {
  double free_at = 0, wake = 0;      // `wake`: when there is something to look at
  int held = 0, due = 0, forwards = 0, backwards = 0;
  action* end = nullptr;             // of its actions so far
  const action* weight = nullptr;    // the first of them whose W may be due
};

}  // namespace detail

/// The list schedule of a pattern, with its W, within the load's memory. When its actions begin is written to `begins`,
/// if it is given.
/// Errors: an empty table where the limit is below stages_per_rank, less than one microbatch needs.
constexpr action_table list_schedule(const pipeline_load& load, const placed_pattern& pattern, const leeway& allowed,
                                     std::vector<double>* begins = nullptr) {
  constexpr double rounding = 1e-9, never = std::numeric_limits<double>::infinity();
  const int stages = load.stages(), m = load.microbatches, ranks = load.pp;
  const int v = load.stages_per_rank(), limit = load.memory_limit;
  if (limit < v) return {};
  const bool split = !load.whole_backward;
  const action_kind backward = load.backward();
  action_table t;
  t.microbatches = m;
  t.rank_of_stage = load.rank_of_stage;
  const int row = (split ? 3 : 2) * v * m;
  t.actions.assign(static_cast<std::size_t>(ranks) * row, action{});
  if (begins) begins->assign(t.actions.size(), 0);

  // When each result is where it is used; before the first stage and after the last all is there at once.
  std::vector<double> forwards(static_cast<std::size_t>(stages + 1) * m, never), gradients = forwards;
  double* const output = forwards.data() + m;
  double* const gradient = gradients.data();
  for (int mb = 0; mb < m; ++mb) output[mb - m] = gradient[stages * m + mb] = 0;
  const detail::hops hops(load.rank_of_stage, load.cost.send);

  std::vector<detail::rank_progress> progress(static_cast<std::size_t>(ranks));
  std::vector<detail::stage_progress> of_ranks;
  const std::vector<int> reserved = reserve(load, allowed.reserve);
  for (int r = 0; r < ranks; ++r) {
    t.begin.push_back(r * row);
    progress[r].weight = progress[r].end = t.actions.data() + r * row;
    for (int s = 0; s < stages; ++s)
      if (load.rank_of_stage[s] == r)
        of_ranks.push_back({.stage = s,
                            .reserve = reserved[s],
                            .forward_cost = load.cost.of({action_kind::F, s, 0}),
                            .backward_cost = load.cost.of({backward, s, 0}),
                            .weight_cost = load.cost.of({action_kind::W, s, 0}),
                            .down = hops.down[s],
                            .up = hops.up[s],
                            .forward_turn = pattern.forward[s],
                            .backward_turn = pattern.backward[s]});
  }
  // Plain pointers, since a compiler runs this for thousands of actions.
  detail::rank_progress* const all = progress.data();
  detail::stage_progress* const stages_of_ranks = of_ranks.data();
  const int* const rank_of = load.rank_of_stage.data();
  const action* const actions = t.actions.data();
  double* const begin = begins ? begins->data() : nullptr;
  t.begin.push_back(ranks * row);

  bool stuck = false;  // with passes that are there but not in turn
  double now = 0;
  for (int left = ranks * row; left > 0;) {
    double next = never;
    for (int r = 0; r < ranks; ++r) {
      detail::rank_progress& rank = all[r];
      detail::stage_progress* const first_stage = stages_of_ranks + r * v;
      if (rank.wake > now + rounding) {
        if (rank.wake < next) next = rank.wake;
        continue;
      }
      // The pass whose turn it is, of those that memory has room for; and the first one that is there and may come
      // early.
      const bool early_backward = stuck || allowed.backwards || rank.forwards == v * m;
      const bool early_forward = stuck || !allowed.steady || rank.backwards == 0;
      detail::stage_progress* turn = nullptr;
      detail::stage_progress* early = nullptr;
      bool turn_forward = false, is_early_forward = false;
      double turn_at = never, turn_input = never, early_at = never, arrives = never;
      int earlier = rank.held;  // by this stage and those before it
      bool fits = true;
      for (int k = v - 1; k >= 0; --k) {
        detail::stage_progress& s = first_stage[k];
        // Each later stage keeps room for one: so the oldest microbatch can always run to its end.
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
            turn = &s, turn_forward = false;
            turn_at = s.backward_turn, turn_input = input;
          }
          if (input > now + rounding) {
            if (input < arrives) arrives = input;
          } else if (early_backward && s.backward_turn < early_at - rounding) {
            early = &s, is_early_forward = false;
            early_at = s.backward_turn;
          }
        }
        if (s.forwards < m) {
          const double input = output[s.stage * m + s.forwards - m];
          if (input > now + rounding && input < arrives) arrives = input;
          if (fits) {
            if (s.forward_turn < turn_at - rounding) {
              turn = &s, turn_forward = true;
              turn_at = s.forward_turn, turn_input = input;
            }
            const bool room = stuck || s.forwards - s.backwards + s.reserve < limit;
            if (input <= now + rounding && early_forward && room && s.forward_turn < early_at - rounding) {
              early = &s, is_early_forward = true;
              early_at = s.forward_turn;
            }
          }
        }
        earlier -= s.forwards - s.backwards;
      }
      detail::stage_progress* const pick = turn_input <= now + rounding ? turn : early;
      double took = 0;
      if (pick) {
        const bool forward = pick == turn && turn_input <= now + rounding ? turn_forward : is_early_forward;
        const int mb = forward ? pick->forwards : pick->backwards;
        const int stage = pick->stage, to = forward ? stage + 1 : stage - 1;
        *rank.end++ = {forward ? action_kind::F : backward, stage, mb};
        took = forward ? pick->forward_cost : pick->backward_cost;
        const double there = now + took + (forward ? pick->down : pick->up);
        (forward ? output : gradient)[stage * m + mb] = there;
        if (to >= 0 && to < stages)
          if (detail::rank_progress& other = all[rank_of[to]]; there < other.wake)
            other.wake = there > other.free_at ? there : other.free_at;
        if (forward) {
          ++pick->forwards, ++rank.forwards, ++rank.held;
          pick->forward_turn += pattern.interval;
        } else {
          ++pick->backwards, ++rank.backwards;
          pick->backward_turn += pattern.interval;
          if (split) ++rank.due;
          else --rank.held;
        }
      } else if (rank.due > 0) {
        while (rank.weight->kind != action_kind::I) ++rank.weight;
        const detail::stage_progress* s = first_stage;
        while (s->stage != rank.weight->stage) ++s;
        took = s->weight_cost;
        if (allowed.patient && arrives < now + took - rounding && rank.held < limit) {
          rank.wake = arrives;
          if (arrives < next) next = arrives;
          continue;
        }
        *rank.end++ = {action_kind::W, s->stage, rank.weight++->microbatch};
        --rank.due;
        --rank.held;
      } else {
        rank.wake = arrives;
        if (arrives < next) next = arrives;
        continue;
      }
      --left;
      if (begin) begin[rank.end - actions - 1] = now;
      stuck = false;
      rank.wake = rank.free_at = now + took;
      if (rank.wake < next) next = rank.wake;
    }
    if (next == never && left > 0) {
      stuck = true;
      for (int r = 0; r < ranks; ++r) all[r].wake = now;
    } else {
      now = next;
    }
  }
  return t;
}

}  // namespace rankc
