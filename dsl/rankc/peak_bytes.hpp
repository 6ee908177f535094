// SPDX-License-Identifier: Apache-2.0
// The compiler counts the memory of a plan's ranks: fits<plan> and peak_bytes<plan>. <rankc/rankc.hpp> does
// not include this header, because counting takes a compiler longer than all other rules.
#pragma once
#include <rankc/memory/worst_rank.hpp>
#include <rankc/plan/make_plan_data.hpp>
#include <rankc/schedules/one_f_one_b.hpp>

#include <type_traits>
#include <vector>

namespace rankc {

namespace detail {

/// True if a plan fits into the memory of its cluster. Bounds are checked first, because the compiler needs
/// the most time for exact numbers.
constexpr bool fits_memory(const plan_data& p) {
  const auto memory = static_cast<std::size_t>(p.machines.memory);
  const lowering::layer_setting s = setting_for(p, target_of(p.machines));
  const std::vector<lowering::layer_program> layers = lowering::lower_layers(p, s);
  const worst_rank bounds = find_worst(p, layers, s, true);
  if (bounds.bytes > memory || bounds.at_most <= memory) return bounds.bytes <= memory;
  return find_worst(p, layers, s, false).bytes <= memory;
}

/// True if a plan with other values breaks no rule and fits.
constexpr bool would_fit(const auto&... part) {
  const plan_data p = make_plan_data(part...);
  return accepts(p.diagnostics) && fits_memory(p);
}

constexpr void put_gigabytes(sentence& s, std::size_t bytes, bool up) {
  const std::size_t tenths = (bytes + (up ? 99'999'999 : 0)) / 100'000'000;
  s << tenths / 10 << "." << tenths % 10 << " GB";
}

template <class Schedule>
concept takes_microbatches = requires(Schedule s) { s.microbatches = 1; };
/// True if the type of a schedule, rather than a value in it, specifies one stage per rank.
template <class Schedule>
inline constexpr bool has_stage_per_rank = false;
template <class Schedule>
  requires std::is_pointer_v<decltype(&Schedule::stages_per_rank)>
inline constexpr bool has_stage_per_rank<Schedule> = Schedule::stages_per_rank == 1;
/// Another schedule of one stage per rank. 1F1B holds the activations of fewer microbatches.
template <class Schedule>
concept may_be_one_f_one_b =
    takes_microbatches<Schedule> && !std::is_same_v<Schedule, schedules::one_f_one_b> &&
    has_stage_per_rank<Schedule>;

/// Equal numbers of layers, with one more on the first stages; none if there are fewer layers than stages.
/// Shapes: (stages).
constexpr std::vector<int> even_stages(const plan_data& p) {
  const int stages = p.actions.stages();
  int layers = 0;
  for (int n : p.blocks_of_stage) layers += n;
  std::vector<int> even;
  for (int s = 0; s < stages && layers >= stages; ++s)
    even.push_back(layers / stages + (s < layers % stages));
  return even;
}

/// Adds the changes that make a plan fit and keep its dims. Those that cost the least step time come first.
constexpr void offer_cheap_mends(offers& found, const plan_data& p, const auto& model,
                                 const parallel_dims& given, const auto& schedule,
                                 std::span<const int> stage_layers) {
  using schedule_type = std::decay_t<decltype(schedule)>;
  const std::vector<int> even = even_stages(p);
  if (!even.empty() && even != p.blocks_of_stage &&
      would_fit(model, given, schedule, p.recipe, p.machines, even)) {
    sentence& offer = found.next() << "stage_layers{";
    for (std::size_t s = 0; s < even.size(); ++s) offer << (s ? ", " : "") << even[s];
    offer << "}";
  }
  if constexpr (may_be_one_f_one_b<schedule_type>) {
    const schedules::one_f_one_b holds_fewer{schedule.microbatches};
    if (would_fit(model, given, holds_fewer, p.recipe, p.machines, stage_layers))
      found.next() << "schedules::one_f_one_b{" << schedule.microbatches << "}";
  }
  if constexpr (takes_microbatches<schedule_type>) {
    // The number of microbatches of one row.
    const int most = p.recipe.global_batch / static_cast<int>(batch_ranks(p.dims));
    const auto fits_with = [&](int n) {
      auto fewer_rows = schedule;
      fewer_rows.microbatches = n;
      return n > schedule.microbatches && most % n == 0 &&
             would_fit(model, given, fewer_rows, p.recipe, p.machines, stage_layers);
    };
    if (fits_with(most)) found.add("microbatches", find_nearest(schedule.microbatches, most, fits_with));
  }
  parallel_dims sharded = given;
  sharded.sequence_parallel = true;
  if (region_ranks(p.dims) > 1 && !given.sequence_parallel &&
      would_fit(model, sharded, schedule, p.recipe, p.machines, stage_layers))
    found.next() << "sequence_parallel=true";
  training repeating = p.recipe;
  repeating.recompute = {.full = true};
  if (!p.recipe.recompute.any() && would_fit(model, given, schedule, repeating, p.machines, stage_layers))
    found.next() << "recompute={.full = true}";
}

/// RC401: the memory that a rank needs is at most the memory that the cluster has per rank.
constexpr void check_memory(plan_data& p, const auto& model, const parallel_dims& given, const auto& schedule,
                            std::span<const int> stage_layers) {
  if (p.machines.memory == 0 || fits_memory(p)) return;
  const worst_rank worst = find_worst(p, target_of(p.machines));
  sentence& s = refuse(p.diagnostics, 401) << "the ranks of pipeline rank " << worst.rank << " need ";
  put_gigabytes(s, worst.bytes, true);
  s << ", and there are ";
  put_gigabytes(s, static_cast<std::size_t>(p.machines.memory), false);
  offers found;
  offer_cheap_mends(found, p, model, given, schedule, stage_layers);
  if (found.view().empty())  // tried last, because other degrees take the compiler long
    for (const auto degree : {row(region_axis).degree, &parallel_dims::pp})
      found.add_degree(given, degree, find_nearest_degree(given, degree, false, [&](const parallel_dims& d) {
                         return d.*degree > p.dims.*degree &&
                                would_fit(model, d, schedule, p.recipe, p.machines, stage_layers);
                       }));
  s << (found.view().empty()
            ? "; no schedule, tp, pp, number of microbatches or recompute mends it: take a smaller "
              "model, or a larger world"
            : found.view());
}

}  // namespace detail

/// Checks a declared plan, and its memory if the cluster specifies an amount.
template <class Model, class Schedule, class StageLayers>
constexpr report diagnose_memory(const plan<Model, Schedule, StageLayers>& p) {
  const auto check = [](const auto& model, const parallel_dims& dims, const auto& schedule,
                        const training& recipe, const cluster& machines, std::span<const int> stage_layers) {
    plan_data counted = make_plan_data(model, dims, schedule, recipe, machines, stage_layers);
    if (accepts(counted.diagnostics)) detail::check_memory(counted, model, dims, schedule, stage_layers);
    return counted;
  };
  return with_parts(p, check).diagnostics;
}

namespace detail {

template <const auto& Plan>
inline constexpr spoken said_of_memory = speak(diagnose_memory(Plan));
/// True if the plan breaks no rule besides RC401. Only then is its memory counted.
template <const auto& Plan>
concept breaks_no_other_rule = said<Plan>.size == 0;

}  // namespace detail

/// A valid plan whose ranks need no more memory than the cluster has. If the cluster specifies none, every
/// valid plan fits.
/// Errors: RC401, with changes that fit.
template <const auto& Plan>
concept fits = detail::declared_constexpr<Plan> && detail::breaks_no_other_rule<Plan> &&
               detail::accepted<refused<detail::sentences_of<detail::said_of_memory<Plan>>>>;

/// The memory of the rank that needs the most, with that of CUDA and NCCL if `To` is CUDA. It is a constant,
/// and equals the memory that the generator allocates.
/// Units: bytes of one rank.
/// Errors: not a constant if the plan breaks a rule besides RC401.
template <const auto& Plan, target To = target_of(Plan.cluster)>
inline constexpr std::size_t peak_bytes =
    [] { return detail::find_worst(detail::legal_data(Plan), To).bytes; }();

}  // namespace rankc
