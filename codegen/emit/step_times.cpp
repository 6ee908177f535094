// SPDX-License-Identifier: Apache-2.0
#include "step_times.hpp"

#include "../passes/edges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <rankc/schedule/timing.hpp>
#include <stdexcept>

namespace rankc::codegen {

using runtime::stream;

std::string token(const action& a) {
  sentence s;
  s << a;
  return std::string(s.view());
}

std::map<std::string, action> actions_by_name(const plan_data& plan) {
  std::map<std::string, action> out;
  for (const action& a : plan.actions.actions) out[token(a)] = a;
  return out;
}

std::vector<timed> planned_times(const plan_data& plan) {
  const action_table& t = plan.actions;
  const timing over_time = time(t);
  const double send = costs{}.send * planned_forward;
  const auto rank_of_pipeline = [&](int pp) { return layout(plan.dims).flat(coord{.pp = along<mesh_axis::pp>(pp)}); };
  const std::vector<pipeline_edge> edges = edges_of(t);
  std::vector<timed> out;
  for (int r = 0; r < t.ranks(); ++r)
    for (int i = t.begin[r]; i < t.begin[r + 1]; ++i) {
      const action& a = t.actions[i];
      const double begin = over_time.begin[i] * planned_forward, end = over_time.end[i] * planned_forward;
      out.push_back({rank_of_pipeline(r), stream::compute, token(a), begin, end});
      const bool forward = a.kind == action_kind::F;
      const int to = a.stage + (forward ? 1 : -1);
      if (!computes(a.kind) || a.kind == action_kind::W || to < 0 || to >= t.stages() || t.rank_of(to, a.microbatch) == r) continue;
      const std::string name =
          fmt::format("{}{}: stage {} -> {}", forward ? "F" : "B", a.microbatch, a.stage, to);
      const int receiver = t.rank_of(to, a.microbatch);
      const auto edge = std::find_if(edges.begin(), edges.end(), [&](const auto& e) { return e.from == r && e.to == receiver; });
      out.push_back({rank_of_pipeline(r), edge->out, name, end, end + send});
      out.push_back({rank_of_pipeline(receiver), edge->in, name, end, end + send});
    }
  std::stable_sort(out.begin(), out.end(), [](const timed& a, const timed& b) {
    return std::pair(a.rank, a.begin) < std::pair(b.rank, b.begin);
  });
  return out;
}

std::vector<timed> read_times(const plan_data& plan, const std::string& text, std::int64_t& step) {
  std::vector<timed> out;
  try {
    const nlohmann::json all = nlohmann::json::parse(text);
    step = all.at("otherData").at("step");
    for (const nlohmann::json& e : all.at("traceEvents")) {
      if (e.at("ph") != "X") continue;
      const int rank = e.at("pid"), on = e.at("tid");
      const double begin = e.at("ts"), took = e.at("dur");
      if (rank < 0 || rank >= plan.dims.world || on < 0 || on >= runtime::n_streams || took < 0)
        throw std::runtime_error(fmt::format("an event of rank {} on stream {} for {} us; the plan has {} ranks and {} streams",
                                             rank, on, took, plan.dims.world, runtime::n_streams));
      out.push_back({rank, stream(on), e.at("name"), begin, begin + took});
    }
  } catch (const nlohmann::json::exception& e) {
    throw std::runtime_error(fmt::format("not a trace as --trace writes it: {}", e.what()));
  }
  const auto known = actions_by_name(plan);
  const action_table& t = plan.actions;
  for (int r = 0; r < plan.dims.world; ++r) {
    const int pp = layout(plan.dims).at(r).pp.index;
    int next = t.begin[pp];
    for (const timed& e : out) {
      if (e.rank != r || !known.contains(e.name)) continue;
      if (next == t.begin[pp + 1] || token(t.actions[next]) != e.name)
        throw std::runtime_error(fmt::format("rank {} did {}, where this plan has {}: the trace is of another plan", r, e.name,
                                             next == t.begin[pp + 1] ? "nothing left" : token(t.actions[next])));
      ++next;
    }
    if (next != t.begin[pp + 1])
      throw std::runtime_error(fmt::format("rank {} did not do {}: the trace is of another plan", r, token(t.actions[next])));
  }
  return out;
}

}  // namespace rankc::codegen
