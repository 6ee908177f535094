// SPDX-License-Identifier: Apache-2.0
// The plan as a value with named members:
//   inline constexpr plan gpt{.model = models::gpt2{...}, .dims = parallel_dims{.world = 2, .pp = 2},
//                             .schedule = schedules::one_f_one_b{.microbatches = 4},
//                             .recipe = training{.seq = 128, .global_batch = 16}, .cluster = clusters::cpu};
//   static_assert(valid<gpt>);
// Deduction guides deduce its type even if members are left out, so that a rule reports a missing member.
#pragma once
#include <rankc/recipe/cluster.hpp>
#include <rankc/plan/plan.hpp>
#include <rankc/rules/values/parts.hpp>

#include <type_traits>

namespace rankc {

/// The number of repeated layers on each stage, e.g. `stage_layers{9, 8, 8, 7}`. It is the last member of a
/// plan. Without it the layers are split by their cost. The first stage, with the embedding, and the last
/// one, with the head, may have no repeated layer.
template <std::size_t Stages>
struct stage_layers {
  int of_stage[Stages];
  constexpr operator std::span<const int>() const { return of_stage; }
};
template <class... Int>
stage_layers(Int...) -> stage_layers<sizeof...(Int)>;
struct stages_by_cost {
  constexpr operator std::span<const int>() const { return {}; }
};

template <class Model, class Schedule, class StageLayers>
struct plan;
/// Calls `make` with the parts of a plan as values, and returns its plan_data. If a part is missing, the
/// result has only the diagnostics.
template <class Model, class Schedule, class StageLayers>
constexpr plan_data with_parts(const plan<Model, Schedule, StageLayers>& p, auto make) {
  plan_data refused;
  check_parts(refused.diagnostics, p.model, p.schedule, p.recipe, p.cluster);
  if constexpr (detail::a_model<Model> && detail::a_schedule<Schedule>)
    if (accepts(refused.diagnostics))
      return make(p.model, p.dims, p.schedule, p.recipe, p.cluster, p.stage_layers);
  return refused;
}

/// A training plan. Without dims it is for one rank.
/// Errors: `valid` prints all broken rules of RC1xx to RC3xx at once; `fits` (rankc/peak_bytes.hpp) prints
/// RC401.
template <class Model = no_model, class Schedule = no_schedule, class StageLayers = stages_by_cost>
struct plan {
  Model model{};
  parallel_dims dims{};
  Schedule schedule{};
  training recipe{};
  rankc::cluster cluster{};
  StageLayers stage_layers{};

  constexpr report diagnose() const {
    return with_parts(*this, [](const auto&... part) { return check_plan(part...); }).diagnostics;
  }
};

namespace detail {

/// True for types of members that are neither a model nor a schedule.
template <class T>
inline constexpr bool is_other_part =
    std::is_same_v<T, parallel_dims> || std::is_same_v<T, training> || std::is_same_v<T, cluster>;

/// Deduces the model and the schedule from the types of the members that are nothing else. The first of two
/// is the model, the second the schedule. A single one is the model if it has a stack, else the schedule.
template <class... Free>
struct model_and_schedule {
  using model = no_model;
  using schedule = no_schedule;
};
template <class One>
struct model_and_schedule<One> {
  using model = std::conditional_t<has_stack<One>, One, no_model>;
  using schedule = std::conditional_t<has_stack<One>, no_schedule, One>;
};
template <class First, class Second, class... More>
struct model_and_schedule<First, Second, More...> {
  using model = First;
  using schedule = Second;
};

/// Deduces the types of all members of a plan from the types of the given ones.
template <class... T>
struct types {};
template <class Given, class... Free>
struct deduced_plan : model_and_schedule<Free...> {
  using stages = stages_by_cost;
};
template <class First, class... Rest, class... Free>
struct deduced_plan<types<First, Rest...>, Free...> : deduced_plan<types<Rest...>, Free..., First> {};
template <class First, class... Rest, class... Free>
  requires is_other_part<First>
struct deduced_plan<types<First, Rest...>, Free...> : deduced_plan<types<Rest...>, Free...> {};
template <std::size_t Stages, class... Free>
struct deduced_plan<types<stage_layers<Stages>>, Free...> : model_and_schedule<Free...> {
  using stages = stage_layers<Stages>;
};

}  // namespace detail

// The first guide takes any members with explicit types. With the others, dims and recipe may be bare braces.
template <class... Given, class P = detail::deduced_plan<detail::types<Given...>>>
plan(Given...) -> plan<typename P::model, typename P::schedule, typename P::stages>;
template <class Model, class Schedule, std::size_t Stages>
plan(Model, parallel_dims, Schedule, training, cluster, stage_layers<Stages>)
    -> plan<Model, Schedule, stage_layers<Stages>>;
template <class Model, class Schedule>
plan(Model, parallel_dims, Schedule, training, cluster) -> plan<Model, Schedule>;
template <class Model, class Schedule>
plan(Model, parallel_dims, Schedule, training) -> plan<Model, Schedule>;
template <class Model>
plan(Model, parallel_dims, training, cluster) -> plan<Model>;
template <class Schedule>
plan(parallel_dims, Schedule, training, cluster) -> plan<no_model, Schedule>;

/// True for a plan type, or a const reference to one.
template <class T>
inline constexpr bool is_plan = false;
template <class Model, class Schedule, class StageLayers>
inline constexpr bool is_plan<plan<Model, Schedule, StageLayers>> = true;
template <class Model, class Schedule, class StageLayers>
inline constexpr bool is_plan<const plan<Model, Schedule, StageLayers>&> = true;

}  // namespace rankc
