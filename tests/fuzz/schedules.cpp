// SPDX-License-Identifier: Apache-2.0
#include "schedules.hpp"

#include <rankc/schedule/csv.hpp>
#include <rankc/schedules/best.hpp>
#include <rankc/schedules/dual_pipe.hpp>
#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/gpipe.hpp>
#include <rankc/schedules/group_interleaved.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/schedules/interleaved_zero_bubble.hpp>
#include <rankc/schedules/looped_bfs.hpp>
#include <rankc/schedules/one_f_one_b.hpp>
#include <rankc/schedules/one_f_one_b_v.hpp>
#include <rankc/schedules/v_half.hpp>
#include <rankc/schedules/v_min.hpp>
#include <rankc/schedules/zero_bubble_1p.hpp>
#include <rankc/schedules/zero_bubble_2p.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>
#include <rankc/schedules/zero_bubble_v_greedy.hpp>

#include <algorithm>

namespace fuzz {

namespace {

schedule collect_for(int pp, const auto& from) {
  schedule s{from.microbatches, from.stages_per_rank, from.name};
  if constexpr (requires { from.check(s.said, pp); }) from.check(s.said, pp);
  if (accepts(s.said) && from.microbatches >= 1) s.emitted = collect(from, pp);
  return s;
}

/// The same as schedules::from_csv, whose text is a template argument.
schedule read_text(const schedule_choice& c, int pp) {
  schedule s{1, 1, "from_csv"};
  s.as_written = true;
  s.emitted = parse_csv(s.said, c.text);
  if (!accepts(s.said)) return s;
  const action_table& t = s.emitted;
  s.microbatches = t.microbatches;
  for (int r = 0; r < t.ranks(); ++r) {
    int on_rank = 0;
    for (int i = 0; i < t.stages(); ++i)
      on_rank += (t.rank_of_stage[i] == r) + (t.bidirectional() && t.reversed_rank_of_stage[i] == r);
    s.stages_per_rank = std::max(s.stages_per_rank, on_rank);
  }
  if (t.ranks() != pp) refuse(s.said, 313) << "pp=" << pp << ", but the text has " << t.ranks() << " lines";
  return s;
}

std::vector<action> actions_of(const action_table& t, int rank) {
  return {t.actions.begin() + t.begin[static_cast<std::size_t>(rank)],
          t.actions.begin() + t.begin[static_cast<std::size_t>(rank) + 1]};
}

}  // namespace

int stages_per_rank(order by, int wanted) {
  switch (by) {
    case order::looped_bfs:
    case order::interleaved_one_f_one_b:
    case order::interleaved_zero_bubble:
    case order::group_interleaved:
    case order::best:
      return wanted;
    case order::zero_bubble_v:
    case order::zero_bubble_v_greedy:
    case order::v_half:
    case order::v_min:
    case order::one_f_one_b_v:
    case order::dual_pipe_v:
      return 2;
    default:
      return 1;
  }
}

schedule make_schedule(const schedule_choice& c, int pp) {
  const int m = c.microbatches, n = c.stages_per_rank;
  switch (c.by) {
    case order::gpipe:
      return collect_for(pp, schedules::gpipe{m});
    case order::one_f_one_b:
      return collect_for(pp, schedules::one_f_one_b{m});
    case order::looped_bfs:
      return collect_for(pp, schedules::looped_bfs{m, n, c.inference});
    case order::interleaved_one_f_one_b:
      return collect_for(pp, schedules::interleaved_one_f_one_b{m, n});
    case order::interleaved_zero_bubble:
      return collect_for(pp, schedules::interleaved_zero_bubble{m, n});
    case order::zero_bubble_1p:
      return collect_for(pp, schedules::zero_bubble_1p{m});
    case order::zero_bubble_2p:
      return collect_for(pp, schedules::zero_bubble_2p{m});
    case order::zero_bubble_v:
      return collect_for(pp, schedules::zero_bubble_v{m});
    case order::zero_bubble_v_greedy:
      return collect_for(pp, schedules::zero_bubble_v_greedy{m});
    case order::v_half:
      return collect_for(pp, schedules::v_half{m});
    case order::v_min:
      return collect_for(pp, schedules::v_min{m});
    case order::one_f_one_b_v:
      return collect_for(pp, schedules::one_f_one_b_v{m});
    case order::group_interleaved:
      return collect_for(pp, schedules::group_interleaved{m, n});
    case order::dual_pipe:
      return collect_for(pp, schedules::dual_pipe{m, c.inference});
    case order::dual_pipe_v:
      return collect_for(pp, schedules::dual_pipe_v{m, c.inference});
    case order::best:
      return collect_for(pp, schedules::best{.microbatches = m, .stages_per_rank = n, .runs = 2});
    case order::text:
      break;
  }
  return read_text(c, pp);
}

std::string draw_text(draws& d, const schedule& from) {
  sentence s;
  const int swaps = d.one_of({0, 0, 0, 1, 2});
  const bool overlaps = d.chance(20);
  for (int r = 0; r < from.emitted.ranks(); ++r) {
    std::vector<action> all = actions_of(from.emitted, r);
    for (int n = 0; n < swaps && all.size() > 1; ++n) {
      const std::size_t at = static_cast<std::size_t>(d.below(static_cast<int>(all.size()) - 1));
      if (!all[at].overlaps_next && !all[at + 1].overlaps_next && (at == 0 || !all[at - 1].overlaps_next))
        std::swap(all[at], all[at + 1]);
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool pairs = i + 1 < all.size() && (all[i].overlaps_next || (overlaps && d.chance(15)));
      s << (i ? ", " : "");
      if (pairs) {
        s << "OVERLAP(" << all[i] << "," << all[i + 1] << ")";
        ++i;
      } else s << all[i];
    }
    s << "\n";
  }
  return std::string(s.view());
}

namespace {

/// The rank of stage `s` in a placement: looped, V-shaped, contiguous, or random. Each rank has a stage.
int draw_rank(draws& d, int kind, int s, int pp, int stages) {
  const int turn = s % (2 * pp);
  if (kind < 2) return s % pp;
  if (kind < 4) return turn < pp ? turn : 2 * pp - 1 - turn;
  if (kind < 5) return s * pp / stages;
  return s < pp ? s : d.below(pp);
}
std::vector<int> draw_placement(draws& d, int pp, int stages) {
  std::vector<int> rank_of(static_cast<std::size_t>(stages));
  const int kind = d.below(6);
  for (int s = 0; s < stages; ++s) rank_of[static_cast<std::size_t>(s)] = draw_rank(d, kind, s, pp, stages);
  return rank_of;
}

}  // namespace

std::string draw_own_text(draws& d, int pp, int stages, int microbatches) {
  const std::vector<int> rank_of = draw_placement(d, pp, stages);
  const bool splits = d.chance(50);
  struct state {
    bool forward, input, weight;
  };
  std::vector<std::vector<state>> done(static_cast<std::size_t>(stages),
                                       std::vector<state>(static_cast<std::size_t>(microbatches)));
  std::vector<sentence> lines(static_cast<std::size_t>(pp));
  const auto at = [&](int s, int m) -> state& {
    return done[static_cast<std::size_t>(s)][static_cast<std::size_t>(m)];
  };
  for (;;) {
    std::vector<action> ready;
    for (int s = 0; s < stages; ++s)
      for (int m = 0; m < microbatches; ++m) {
        const state& x = at(s, m);
        if (!x.forward && (s == 0 || at(s - 1, m).forward)) ready.push_back({action_kind::F, s, m});
        const bool has_gradient = x.forward && (s + 1 == stages || at(s + 1, m).input);
        if (!x.input && has_gradient)
          ready.push_back({splits && d.chance(60) ? action_kind::I : action_kind::B, s, m});
        if (x.input && !x.weight) ready.push_back({action_kind::W, s, m});
      }
    if (ready.empty()) break;
    const action a = d.one_in(ready);
    state& x = at(a.stage, a.microbatch);
    x.forward = true;
    x.input |= a.kind != action_kind::F;
    x.weight |= a.kind == action_kind::B || a.kind == action_kind::W;
    sentence& line = lines[static_cast<std::size_t>(rank_of[static_cast<std::size_t>(a.stage)])];
    line << (line.empty() ? "" : ", ") << a;
  }
  std::string text;
  for (const sentence& line : lines) text += std::string(line.view()) + "\n";
  return text;
}

}  // namespace fuzz
