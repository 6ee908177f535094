// SPDX-License-Identifier: Apache-2.0
// Every kind of schedule as one type, and schedules as text.
#pragma once
#include "draws.hpp"

#include <rankc/schedule/actions.hpp>

#include <string>

namespace fuzz {

using namespace rankc;

enum class order : unsigned char {
  gpipe,
  one_f_one_b,
  looped_bfs,
  interleaved_one_f_one_b,
  interleaved_zero_bubble,
  zero_bubble_1p,
  zero_bubble_2p,
  zero_bubble_v,
  zero_bubble_v_greedy,
  v_half,
  v_min,
  one_f_one_b_v,
  group_interleaved,
  dual_pipe,
  dual_pipe_v,
  best,
  text
};
inline constexpr int n_orders = static_cast<int>(order::text) + 1;

/// A plan's schedule and its parameters.
struct schedule_choice {
  order by = order::gpipe;
  int microbatches = 1, stages_per_rank = 1;
  bool inference = false;
  std::string text{};  // order::text alone
};

/// A schedule for a number of ranks, as plans take it.
struct schedule {
  int microbatches = 1, stages_per_rank = 1;
  std::string_view name;
  action_table emitted{};
  report said{};
  bool as_written = false;
  action_table table(int) const { return emitted; }
  int stages(int) const { return emitted.stages(); }
  void check(report& out, int) const { out.insert(out.end(), said.begin(), said.end()); }
};

schedule make_schedule(const schedule_choice&, int pp);

/// The stages per rank: fixed by the order, or the wanted number.
int stages_per_rank(order, int wanted);

/// The text of a drawn schedule's actions, with some of them reordered.
std::string draw_text(draws&, const schedule&);

/// The text of a schedule that runs, with an arbitrary placement and, on each rank, an order that the data
/// allow.
std::string draw_own_text(draws&, int pp, int stages, int microbatches);

}  // namespace fuzz
