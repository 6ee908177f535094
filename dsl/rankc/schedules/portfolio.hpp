// SPDX-License-Identifier: Apache-2.0
// All published schedules, and `listed`, one of them as a value. A plan search chooses from these.
#pragma once
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

#include <iterator>
#include <stdexcept>
#include <string>

namespace rankc::schedules {

template <class... Schedule>
struct type_list {
  static constexpr std::string_view names[]{Schedule::name...};
};
using published = type_list<gpipe, one_f_one_b, looped_bfs, interleaved_one_f_one_b, group_interleaved,
                            interleaved_zero_bubble, zero_bubble_1p, zero_bubble_2p, zero_bubble_v,
                            zero_bubble_v_greedy, v_half, v_min, one_f_one_b_v, dual_pipe, dual_pipe_v>;

/// True if the schedule accepts any number of stages per rank.
template <class Schedule>
inline constexpr bool has_free_stages = requires(Schedule s) { s.stages_per_rank = 1; };

/// True if the schedule splits backward into I and W.
template <class Schedule>
inline constexpr bool splits_backward = [] {
  Schedule s;
  s.microbatches = 4;
  for (const action& a : collect(s, 2).actions)
    if (a.kind == action_kind::I || a.kind == action_kind::W) return true;
  return false;
}();

/// Throws for a name that no published schedule has. In a constant expression the call itself is the error,
/// because this function is not constexpr.
[[noreturn]] inline void no_published_schedule_has_the_name(std::string_view name) {
  std::string text = "no published schedule has the name '" + std::string(name) + "'; the names are ";
  constexpr int count = std::ssize(published::names);
  for (int i = 0; i < count; ++i) text.append(list_separator(i, count)).append(published::names[i]);
  throw std::invalid_argument(text);
}

/// A published schedule by its name, which is one of published::names.
/// Errors: those of the schedule. An unknown name is a compiler error in a constant expression; elsewhere
/// std::invalid_argument is thrown.
struct listed {
  std::string_view name = one_f_one_b::name;
  int microbatches = 1, stages_per_rank = 1;

 private:
  /// Calls `visit` with the schedule itself.
  template <class First, class... Rest>
  constexpr auto as(auto visit, type_list<First, Rest...>) const {
    if (name != First::name) {
      if constexpr (sizeof...(Rest) > 0) return as(visit, type_list<Rest...>{});
      else no_published_schedule_has_the_name(name);
    }
    First s;
    s.microbatches = microbatches;
    if constexpr (schedules::has_free_stages<First>) s.stages_per_rank = stages_per_rank;
    return visit(s);
  }

 public:
  constexpr bool operator==(const listed&) const = default;
  constexpr int stages(int pp) const {
    return as([&](const auto& s) { return count_stages(s, pp); }, published{});
  }
  constexpr int rank_of_stage(int stage, int pp) const {
    return as([&](const auto& s) { return s.rank_of_stage(stage, pp); }, published{});
  }
  constexpr action_table table(int pp) const {
    return as([&](const auto& s) { return collect(s, pp); }, published{});
  }
  constexpr bool in_halves() const {
    return as([]<class S>(const S&) { return splits_backward<S>; }, published{});
  }
  constexpr bool has_free_stages() const {
    return as([]<class S>(const S&) { return schedules::has_free_stages<S>; }, published{});
  }
  /// The stages_per_rank of the schedule; its default if it accepts any number.
  constexpr int own_stages_per_rank() const {
    return as([]<class S>(const S&) { return S{}.stages_per_rank; }, published{});
  }
  /// A table without actions: the placement of the stages.
  constexpr action_table placement(int pp) const {
    action_table t;
    t.microbatches = microbatches;
    t.begin.assign(static_cast<std::size_t>(pp) + 1, 0);
    as(
        [&](const auto& s) {
          for (int stage = 0; stage < count_stages(s, pp); ++stage) {
            t.rank_of_stage.push_back(s.rank_of_stage(stage, pp));
            if constexpr (requires { s.reversed_from(); })
              t.reversed_rank_of_stage.push_back(s.reversed_rank_of_stage(stage, pp));
          }
          if constexpr (requires { s.reversed_from(); }) t.reversed_from = s.reversed_from();
          return 0;
        },
        published{});
    return t;
  }
  constexpr void check(report& out, int pp) const {
    as(
        [&](const auto& s) {
          if constexpr (requires { s.check(out, pp); }) s.check(out, pp);
          return 0;
        },
        published{});
  }
};

}  // namespace rankc::schedules
