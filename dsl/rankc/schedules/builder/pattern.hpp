// SPDX-License-Identifier: Apache-2.0
// Orders that repeat one microbatch's passes at a fixed interval: software pipelining of the training step.
// Source: the building blocks of Qi et al. 2024, arXiv:2405.15362, section 3; placed as in modulo scheduling.
#pragma once
#include <rankc/schedules/builder/fill.hpp>

namespace rankc {

/// The waits of a microbatch's passes beyond their data dependencies. They determine the memory, because a
/// microbatch's activations are held from F to I. They also determine the slack before a delay makes a rank
/// wait.
/// Shapes: `legs` (2 * stages_per_rank), the wait at each hop between ranks, for each pass of the forwards
/// through the ranks, first to last, then of the backwards; `waits` (2 * stages, or none), in data order.
/// Units: forwards.
struct action_pattern {
  std::vector<double> legs;
  double turn = 0;                 // between the last stage's F and its I
  std::vector<double> waits = {};  // additional waits of single passes
};

/// The begins of the passes of microbatch 0 in a pattern, and the time from one microbatch to the next.
/// Shapes: (stages).
/// Units: of the costs.
struct placed_pattern {
  std::vector<double> forward, backward;
  double interval = 0;
};

/// Places a pattern. The interval between microbatches is the time that the busiest rank needs for one
/// microbatch. The passes are placed in data order, each at the first time that is free in all intervals. So
/// in the steady state no rank waits.
constexpr placed_pattern place(const pipeline_load& load, const action_pattern& p) {
  constexpr double rounding = 1e-9;
  const int stages = load.stages();
  placed_pattern out;
  out.forward.assign(static_cast<std::size_t>(stages), 0);
  out.backward = out.forward;
  std::vector<double> work(static_cast<std::size_t>(load.pp), 0);
  for (int s = 0; s < stages; ++s)
    work[load.rank_of_stage[s]] +=
        load.cost.of({action_kind::F, s, 0}) + load.cost.of({action_kind::B, s, 0});
  const double interval = out.interval = *std::max_element(work.begin(), work.end());

  struct pass {
    double begin, took;
  };
  std::vector<std::vector<pass>> rows(static_cast<std::size_t>(load.pp));
  auto into_interval = [&](double t) {
    return t - interval * static_cast<double>(static_cast<long long>(t / interval));
  };
  double at = 0;
  for (int n = 0; n < 2 * stages; ++n) {
    const bool forward = n < stages;
    const int s = forward ? n : 2 * stages - 1 - n;
    std::vector<pass>& row = rows[load.rank_of_stage[s]];
    const double took = load.cost.of({forward ? action_kind::F : load.backward(), s, 0});
    if (n == stages) at += p.turn * load.cost.forward;
    else if (n > 0 && load.rank_of_stage[s] != load.rank_of_stage[forward ? s - 1 : s + 1])
      at += load.cost.send + p.legs[n / load.pp] * load.cost.forward;
    if (!p.waits.empty()) at += p.waits[n] * load.cost.forward;
    // Each try moves behind one pass of the rank. If no try finds room, two passes overlap and will run one
    // after the other.
    for (std::size_t tries = 0; tries <= 2 * row.size(); ++tries) {
      const auto in_the_way = std::find_if(row.begin(), row.end(), [&](const pass& o) {
        const double after = into_interval(into_interval(at) - into_interval(o.begin) + interval);
        return after < o.took - rounding ||
               (interval - after < took - rounding && interval - after > rounding);
      });
      if (in_the_way == row.end()) break;
      at += into_interval(into_interval(in_the_way->begin) + in_the_way->took - into_interval(at) + interval);
    }
    row.push_back({at, took});
    (forward ? out.forward : out.backward)[s] = at;
    at += took;
  }
  return out;
}

/// The order of F and I (or B) on every rank if the pattern repeats.
constexpr action_table unroll(const pipeline_load& load, const action_pattern& p) {
  constexpr double rounding = 1e-9;
  const int stages = load.stages(), m = load.microbatches;
  const placed_pattern placed = place(load, p);
  struct pass {
    action next;
    double begin;
  };
  action_table order;
  order.microbatches = m;
  order.rank_of_stage = load.rank_of_stage;
  order.actions.reserve(static_cast<std::size_t>(2 * stages) * m);
  for (int r = 0; r < load.pp; ++r) {
    order.begin.push_back(static_cast<int>(order.actions.size()));
    std::vector<pass> row;
    for (int s = 0; s < stages; ++s)
      if (load.rank_of_stage[s] == r) {
        row.push_back({{action_kind::F, s, 0}, placed.forward[s]});
        row.push_back({{load.backward(), s, 0}, placed.backward[s]});
      }
    for (std::size_t left = row.size() * static_cast<std::size_t>(m); left > 0; --left) {
      pass* first = nullptr;
      for (pass& x : row)
        if (x.next.microbatch < m && (!first || x.begin < first->begin - rounding)) first = &x;
      order.actions.push_back(first->next);
      ++first->next.microbatch;
      first->begin += placed.interval;
    }
  }
  order.begin.push_back(static_cast<int>(order.actions.size()));
  return order;
}

}  // namespace rankc
