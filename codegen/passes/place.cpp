// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/intervals.hpp>
#include <rankc/schedule/opened.hpp>

#include <algorithm>

#include "lanes.hpp"
#include "passes.hpp"

namespace rankc::codegen {

void place_arena(lowered& l) {
  const plan_data& plan = *l.plan;
  const std::size_t tokens = static_cast<std::size_t>(plan.rows) * plan.recipe.seq;
  for (pipeline_rank& r : l.ranks) {
    arena_plan& a = r.arena;
    std::size_t at = 0;
    auto take = [&](std::size_t bytes) {
      const std::size_t here = at;
      at += aligned(bytes);
      return here;
    };
    const std::size_t region = r.parameter_elements * l.wide_bytes();
    a.weights = take(region);
    if (l.trains()) {
      a.gradients = take(region);
      a.first_moment = take(region);
      a.second_moment = take(region);
    }
    if (l.has_working_copy()) a.working_copy = take(r.parameter_elements * l.real_bytes());
    for (const stage_plan& s : r.stages) {
      if (l.trains() && !l.splits_backward()) a.chains = std::max(a.chains, std::min(2, static_cast<int>(s.layers.size()) - 1));
      for (const layer_use& use : s.layers) {
        const body& b = l.bodies[use.kind];
        for (const rope_use& wanted : b.ropes) {
          if (a.find_rope(wanted) < a.ropes.size()) continue;
          const std::size_t bytes = static_cast<std::size_t>(wanted.positions) * wanted.dim * l.wide_bytes();
          a.ropes.push_back({wanted, take(bytes), bytes});
        }
        a.work_bytes = std::max({a.work_bytes, b.forward_temp, b.backward_temp});
        if (&use != &s.layers.back()) a.chain_bytes = std::max(a.chain_bytes, b.y_bytes);
      }
    }
    const std::size_t ids = tokens * sizeof(std::int32_t) * plan.actions.microbatches;
    if (r.reads_tokens) a.tokens = take(ids);
    if (r.reads_targets) a.targets = take(ids);
    a.loss = take(l.wide_bytes());
    if (l.trains()) a.norm = take(l.wide_bytes());
    a.slots = take(a.slots_bytes);
    a.boundaries = take(aligned(a.boundary_bytes) * a.boundary_count);
    for (int c = 0; c < a.chains; ++c) a.chain[c] = take(a.chain_bytes);
    a.work = take(a.work_bytes);
    for (const auto* items : {&r.train, &r.evaluate})
      for (const item& i : *items) {
        if (i.on != overlap_lane || !r.overlaps) continue;
        for (const layer_use& use : r.stages[i.stage].layers) {
          const body& b = l.bodies[use.kind];
          a.work_beside_bytes = std::max(a.work_beside_bytes, i.does == phase::forward ? b.forward_temp : b.backward_temp);
        }
      }
    a.work_beside = take(a.work_beside_bytes);
    a.bytes = at;
  }
}

std::size_t bytes_beside_arena(const lowered& l, const pipeline_rank& r) {
  if (l.target == target::host) return 0;
  const plan_data& plan = *l.plan;
  const bool ties = std::any_of(l.tied.begin(), l.tied.end(), [&](const auto& pair) { return pair[0] == r.index || pair[1] == r.index; });
  return cuda::bytes_beside_arena(opened_by(layout(plan.dims), plan.actions, r.index, ties), cuda::edges_by::nccl, plan.dims.world);
}

}  // namespace rankc::codegen
