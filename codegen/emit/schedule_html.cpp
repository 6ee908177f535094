// SPDX-License-Identifier: Apache-2.0
// The schedule as a page: the planned rows, and below them the measured rows of a trace.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <rankc/templates.hpp>

#include "../passes/lanes.hpp"
#include "emit.hpp"
#include "step_times.hpp"

namespace rankc::codegen {

namespace {

using nlohmann::json;

/// The events of one rank, and the data that its row shows.
struct row {
  double busy = 0, first = 0, last = 0;  // of the schedule's actions
  json boxes = json::array();            // [name, class, lane, microbatch, begin, end, half of an OVERLAP]
  json lanes = json::array();            // [name, whether it computes]
  json held = json::array();             // [time, activations held from then on]
  int peak = 0;
};

/// Units: microseconds, as the times have them.
row row_of(const std::vector<const timed*>& events, const std::map<std::string, named_action>& known,
           const std::vector<lane>& lanes) {
  constexpr std::array classes{"f", "b", "i", "w"};
  row out;
  std::vector<std::pair<double, int>> steps;
  std::vector<std::pair<double, double>> works;
  bool any = false;
  for (const timed* e : events) {
    const bool is_compute = lanes[static_cast<std::size_t>(e->lane)].computes;
    const auto found = is_compute ? known.find(e->name) : known.end();
    const bool is_action = found != known.end() && computes(found->second.kind);
    const char* shown = is_compute ? "o" : "c";
    if (is_action) shown = classes[static_cast<int>(found->second.kind)];
    int microbatch = -1;
    if (is_action) microbatch = found->second.microbatch;
    else std::sscanf(e->name.c_str(), "%*1[FB]%d: stage", &microbatch);
    const part half = is_action ? found->second.half : part::whole;
    out.boxes.push_back({e->name, shown, e->lane, microbatch, e->begin, e->end, static_cast<int>(half)});
    if (!is_action) continue;
    out.first = any ? std::min(out.first, e->begin) : e->begin;
    out.last = any ? std::max(out.last, e->end) : e->end;
    any = true;
    works.push_back({e->begin, e->end});
    if (found->second.kind == action_kind::F) steps.push_back({e->begin, 1});
    else if (found->second.kind != action_kind::I) steps.push_back({e->end, -1});
  }
  std::sort(works.begin(), works.end());
  double until = out.first;
  for (const auto& [begin, end] : works) {  // both halves of an OVERLAP run at once
    out.busy += std::max(0.0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  std::sort(steps.begin(), steps.end());  // at one time, frees come first
  int held = 0;
  for (const auto& [time, change] : steps) {
    out.peak = std::max(out.peak, held += change);
    out.held.push_back({time, held});
  }
  return out;
}

/// The rows of a step. Its makespan reaches from the first of the schedule's actions on any rank to the end
/// of the last.
json lane_of(const plan_data& plan, const std::vector<timed>& times, const std::string& title,
             const std::string& unit, double per_unit) {
  const auto known = actions_by_name(plan);
  std::map<int, std::vector<const timed*>> by_rank;
  for (const timed& e : times) by_rank[e.rank].push_back(&e);
  std::map<int, row> rows;
  double begin = 0, end = 0, last = 0;
  for (const auto& [rank, events] : by_rank) {
    const auto lanes = lanes_of(plan, layout(plan.dims).at(rank)[axis::pp]);
    row& r = rows[rank] = row_of(events, known, lanes);
    for (const lane& each : lanes) r.lanes.push_back({each.name, each.computes});
    begin = rows.size() == 1 ? r.first : std::min(begin, r.first);
    end = std::max(end, r.last);
    for (const timed* e : events) last = std::max(last, e->end);
  }
  const double makespan = end - begin;
  double busy = 0;
  json lane{{"title", title},       {"unit", unit},           {"per_unit", per_unit}, {"begin", begin},
            {"makespan", makespan}, {"length", last - begin}, {"rows", json::array()}};
  for (auto& [rank, r] : rows) {
    const coord c = layout(plan.dims).at(rank);
    busy += r.busy;
    lane["rows"].push_back({{"rank", rank},
                            {"place", fmt::format("pp {} dp {} {} {}", c[axis::pp], c[axis::dp_replicate],
                                                  name(region_axis), c[region_axis])},
                            {"bubble", makespan > 0 ? 1 - r.busy / makespan : 0},
                            {"peak", r.peak},
                            {"lanes", std::move(r.lanes)},
                            {"boxes", std::move(r.boxes)},
                            {"held", std::move(r.held)}});
  }
  lane["bubble"] = makespan > 0 ? 1 - busy / (makespan * static_cast<double>(rows.size())) : 0;
  return lane;
}

/// JSON for a page. Each `<` is escaped, so that no text ends the element that contains it.
std::string in_page(const json& j) {
  std::string out;
  for (const char c : j.dump()) c == '<' ? out += "\\u003c" : out += c;
  return out;
}

}  // namespace

std::string schedule_html(const plan_data& plan, const std::string& measured) {
  json lanes = json::array();
  lanes.push_back(lane_of(plan, planned_times(plan), "planned", "forwards", planned_forward));
  if (!measured.empty()) {
    std::int64_t step = 0;
    const std::vector<timed> times = read_times(plan, measured, step);
    lanes.push_back(lane_of(plan, times, fmt::format("measured, step {}", step), "ms", 1000));
  }
  return fill(templates::timeline_html,
              {{"title", std::string(plan.name)},
               {"about", fmt::format("{}, {} microbatches, {} stages on {} ranks (pp {} x dp {} x {} {})",
                                     plan.schedule, plan.actions.microbatches, plan.actions.stages(),
                                     plan.dims.world, plan.dims.pp, plan.dims.dp_replicate, name(region_axis),
                                     region_ranks(plan.dims))},
               {"lanes", in_page(lanes)}});
}

}  // namespace rankc::codegen
