// SPDX-License-Identifier: Apache-2.0
// The planned step as trace events, in the format in which a program writes a measured step.
#include <rankc/runtime/trace_events.hpp>

#include "../passes/lanes.hpp"
#include "emit.hpp"
#include "step_times.hpp"

namespace rankc::codegen {

std::string schedule_trace(const plan_data& plan) {
  const std::vector<timed> times = planned_times(plan);
  std::vector<runtime::traced> events;
  for (const timed& e : times) events.push_back({e.rank, e.lane, e.name.c_str(), e.begin, e.end});
  runtime::trace_head head{std::string(plan.name), "planned", 0, {}, {}};
  for (int r = 0; r < plan.actions.ranks(); ++r) {
    std::vector<std::string>& names = head.lanes.emplace_back();
    for (const lane& each : lanes_of(plan, r)) names.push_back(each.name);
  }
  for (int r = 0; r < plan.dims.world; ++r) {
    const coord c = layout(plan.dims).at(r);
    head.ranks.push_back({c[axis::pp], c[axis::dp_replicate], c[region_axis], {}});
  }
  return runtime::trace_events(head, events);
}

}  // namespace rankc::codegen
