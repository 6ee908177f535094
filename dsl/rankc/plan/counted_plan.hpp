// SPDX-License-Identifier: Apache-2.0
// A plan as numbers: what its memory and its time depend on, and the memory of the rank that needs most.
#pragma once
#include <rankc/plan/plan_value.hpp>
#include <rankc/memory/memory.hpp>
#include <rankc/schedule/fuse.hpp>

#include <algorithm>
#include <vector>

namespace rankc {

using lowering::target;

/// What a plan is built for: GPUs, where its cluster has some.
constexpr target target_of(const cluster& c) {
  return c.flops > 0 || c.within_node > 0 ? target::cuda : target::host;
}
/// The precision a plan computes in on a target: the host has no bf16 and takes f32 for it.
constexpr precision precision_on(target to, precision p) { return to == target::host && p == bf16 ? f32 : p; }

namespace detail {

struct traced_kind {
  trace ops;
  int count;
  bool repeated;
};

/// A plan as numbers: of plan_data what memory depends on.
struct counted_plan {
  parallel_dims dims{};
  training recipe{};
  cluster machines{};
  action_table actions{};
  costs expected{};
  int rows = 0;
  std::vector<traced_kind> kinds{};
  std::vector<int> blocks_of_stage{};
};

/// Check a plan's parts as check_plan does; where they break no rule, what memory depends on.
constexpr auto count_plan(report& out, const auto& model, const parallel_dims& given, const auto& schedule,
                          const training& recipe, const cluster& machines,
                          std::span<const int> stage_layers) {
  counted_plan p{.dims = resolve(given), .recipe = recipe, .machines = machines};
  check_plan(
      out, model, given, schedule, recipe, machines,
      [&](std::string_view, int count, bool repeated, const trace& t) {
        p.kinds.push_back({t, count, repeated});
      },
      stage_layers);
  if (!accepts(out)) return p;
  p.actions = actions_of(schedule, p.dims);
  p.rows = recipe.global_batch / schedule.microbatches / static_cast<int>(batch_ranks(p.dims));
  p.blocks_of_stage = split_layers(p, stage_layers);
  p.expected = expected_costs(p);
  return p;
}

/// Check a plan as declared; where it breaks no rule, what its memory depends on.
template <class Model, class Schedule, class StageLayers>
constexpr counted_plan count_plan(report& out, const plan<Model, Schedule, StageLayers>& p) {
  check_parts(out, p.model, p.schedule, p.recipe, p.cluster);
  if constexpr (a_model<Model> && a_schedule<Schedule>)
    if (accepts(out))
      return count_plan(out, p.model, p.dims, p.schedule, p.recipe, p.cluster, p.stage_layers);
  return {};
}

/// The pipeline rank that needs most, and its bytes.
struct worst_rank {
  int rank = 0;
  std::size_t bytes = 0, at_most = 0;
};
constexpr worst_rank find_worst(const auto& p, const auto& layers, const lowering::layer_setting& s,
                                bool bounds) {
  worst_rank worst;
  int rank = 0;
  for (const lowering::rank_memory& m : lowering::memory_of(p, layers, s, bounds)) {
    if (m.total() > worst.bytes) {
      worst.rank = rank;
      worst.bytes = m.total();
    }
    worst.at_most = std::max(worst.at_most, m.total() + m.between);
    ++rank;
  }
  return worst;
}
constexpr lowering::layer_setting setting_for(const auto& p, target to) {
  return lowering::setting_of(p, precision_on(to, p.recipe.precision), to);
}
constexpr worst_rank find_worst(const auto& p, target to) {
  const lowering::layer_setting s = setting_for(p, to);
  return find_worst(p, lowering::lower_layers(p, s), s, false);
}

}  // namespace detail

}  // namespace rankc
