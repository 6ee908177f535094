// SPDX-License-Identifier: Apache-2.0
#include "portfolio.hpp"

#include <rankc/schedules/best.hpp>
#include <rankc/schedules/portfolio.hpp>

#include <algorithm>
#include <array>

namespace rankc::tool {

namespace {

template <class Schedule>
action_table make(report& out, const schedule_sizes& sizes) {
  Schedule schedule;
  schedule.microbatches = sizes.microbatches;
  if constexpr (requires { schedule.stages_per_rank = 1; }) schedule.stages_per_rank = sizes.stages_per_rank;
  if constexpr (requires { schedule.group; }) schedule.group = sizes.group;
  if constexpr (requires { schedule.cost; })
    schedule.cost = {sizes.costs.forward, sizes.costs.input_grad, sizes.costs.weight_grad, sizes.costs.send};
  if constexpr (requires { schedule.inference; }) schedule.inference = sizes.inference;
  const std::size_t before = out.size();
  if constexpr (requires { schedule.check(out, sizes.pp); }) schedule.check(out, sizes.pp);
  if (out.size() > before) return {};
  action_table t = collect(schedule, sizes.pp);
  return sizes.inference && !t.inference ? forwards_of(t) : t;
}

using namespace rankc::schedules;

/// The search, in bounded time.
action_table make_best(report& out, const schedule_sizes& sizes) {
  const std::size_t before = out.size();
  best{.stages_per_rank = sizes.stages_per_rank, .memory_limit = sizes.memory_limit}.check(out, sizes.pp);
  if (out.size() > before) return {};
  constexpr long long most_actions = 50'000'000, most_runs = 30'000;
  const long long actions = 3LL * sizes.pp * sizes.stages_per_rank * sizes.microbatches;
  const schedule_choice choice =
      best_schedule({.pp = sizes.pp,
                     .stages_per_rank = sizes.stages_per_rank,
                     .microbatches = sizes.microbatches,
                     .cost = sizes.costs,
                     .memory_limit = sizes.memory_limit,
                     .runs = static_cast<int>(std::min(most_runs, most_actions / actions))});
  return sizes.inference ? forwards_of(choice.table) : choice.table;
}

template <class Schedule>
constexpr known_schedule known{Schedule::name, Schedule{}.stages_per_rank, has_free_stages<Schedule>,
                               make<Schedule>};

constexpr auto all = []<class... Schedule>(type_list<Schedule...>) {
  return std::array{known<Schedule>..., known_schedule{best::name, 1, true, make_best}};
}(published{});

}  // namespace

std::span<const known_schedule> portfolio() { return all; }

std::string schedule_names() {
  std::string names;
  for (const known_schedule& s : all) names += (names.empty() ? "" : ", ") + std::string(s.name);
  return names;
}

}  // namespace rankc::tool
