// SPDX-License-Identifier: Apache-2.0
#include "step_times.hpp"

#include "../passes/lanes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <rankc/runtime/failure.hpp>
#include <rankc/schedule/timing.hpp>
#include <utility>

namespace rankc::codegen {

std::string item_token(const action_table& t, int i) {
  return t.actions[i].overlaps_next ? "OVERLAP(" + token(t.actions[i]) + "," + token(t.actions[i + 1]) + ")"
                                    : token(t.actions[i]);
}

part part_of(const action_table& t, int rank, int i) {
  if (t.actions[i].overlaps_next) return part::first;
  return i > t.begin[rank] && t.actions[i - 1].overlaps_next ? part::second : part::whole;
}

bool has_overlaps(const action_table& t) {
  return std::any_of(t.actions.begin(), t.actions.end(), [](const action& a) { return a.overlaps_next; });
}

std::map<std::string, named_action> actions_by_name(const plan_data& plan) {
  const action_table& t = plan.actions;
  std::map<std::string, named_action> out;
  for (int r = 0; r < t.ranks(); ++r)
    for (int i = t.begin[r]; i < t.begin[r + 1]; ++i)
      out[token(t.actions[i])] = {t.actions[i], part_of(t, r, i)};
  return out;
}

namespace {

/// The lane of a planned action. Collectives that overlap computation share a lane.
int lane_of(const action& a, part half) {
  if (a.kind == action_kind::reduce_grad || a.kind == action_kind::unshard) return reduce_lane;
  return half == part::first ? overlap_lane : compute_lane;
}

/// Checks that a rank ran the action that the plan has next. An empty name: no action is left.
void check_action(int rank, const std::string& ran, const std::string& planned) {
  if (ran == planned) return;
  if (ran.empty()) throw runtime::failure(1, "RC7920: rank {} ended before {} of the plan", rank, planned);
  if (planned.empty())
    throw runtime::failure(1, "RC7921: rank {} ran {} after the last action of the plan", rank, ran);
  throw runtime::failure(1, "RC7922: rank {} ran {}; expected {}, the plan's next action", rank, ran,
                         planned);
}

/// Checks that each rank ran the plan's computations in order. The halves of an OVERLAP may run in any order.
void check_order(const plan_data& plan, const std::vector<timed>& times) {
  const action_table& t = plan.actions;
  const auto known = actions_by_name(plan);
  for (int r = 0; r < plan.dims.world; ++r) {
    const int pp = layout(plan.dims).at(r)[axis::pp];
    std::vector<const timed*> did;
    for (const timed& e : times)
      if (const auto a = known.find(e.name); e.rank == r && a != known.end() && computes(a->second.kind))
        did.push_back(&e);
    std::stable_sort(did.begin(), did.end(),
                     [](const timed* a, const timed* b) { return a->begin < b->begin; });
    std::vector<std::string> planned;
    for (int i = t.begin[pp]; i < t.begin[pp + 1]; ++i)
      if (computes(t.actions[i].kind)) planned.push_back(token(t.actions[i]));
    for (std::size_t i = 0; i < std::max(did.size(), planned.size()); ++i) {
      if (i < planned.size() && i + 1 < did.size() && known.at(did[i]->name).half == part::second &&
          did[i + 1]->name == planned[i])
        std::swap(did[i], did[i + 1]);
      check_action(r, i < did.size() ? did[i]->name : "", i < planned.size() ? planned[i] : "");
    }
  }
}

/// Checks that an event has a rank and a lane of the plan.
void check_event(const plan_data& plan, int rank, int on, double took) {
  if (rank < 0 || rank >= plan.dims.world)
    throw runtime::failure(1, "RC7923: an event is of rank {}; the plan has {} ranks", rank, plan.dims.world);
  const std::size_t lanes = lanes_of(plan, layout(plan.dims).at(rank)[axis::pp]).size();
  if (on < 0 || static_cast<std::size_t>(on) >= lanes)
    throw runtime::failure(1, "RC7924: an event of rank {} is on lane {}; the rank has {} lanes", rank, on,
                           lanes);
  if (took < 0)
    throw runtime::failure(1, "RC7925: an event of rank {} on lane {} lasts {} us; expected at least 0", rank,
                           on, took);
}

[[noreturn]] void refuse_trace() {
  throw runtime::failure(1, "RC7926: the text is not a trace that --trace wrote");
}

/// A field that is a whole number of the type.
template <class Whole>
Whole whole_at(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = object.at(key);
  const bool fits = value.is_number_unsigned()
                        ? std::in_range<Whole>(value.get<std::uint64_t>())
                        : value.is_number_integer() && std::in_range<Whole>(value.get<std::int64_t>());
  if (!fits) refuse_trace();
  return value.get<Whole>();
}

/// The event of an action; checks it against the plan.
timed event_of(const plan_data& plan, const nlohmann::json& e) {
  const int rank = whole_at<int>(e, "pid"), on = whole_at<int>(e, "tid");
  const double begin = e.at("ts"), took = e.at("dur");
  if (!std::isfinite(begin + took)) refuse_trace();
  check_event(plan, rank, on, took);
  return {rank, on, e.at("name"), begin, begin + took};
}

}  // namespace

std::vector<timed> planned_times(const plan_data& plan) {
  const action_table& t = plan.actions;
  const timing over_time = time(t, plan.expected);
  const double send = plan.expected.send * planned_forward;
  const auto rank_of_pipeline = [&](int pp) { return layout(plan.dims).flat(coord(along<axis::pp>(pp))); };
  std::vector<std::vector<lane>> lanes;
  for (int r = 0; r < t.ranks(); ++r) lanes.push_back(lanes_of(plan, r));
  std::vector<timed> out;
  for (int r = 0; r < t.ranks(); ++r)
    for (int i = t.begin[r]; i < t.begin[r + 1]; ++i) {
      const action& a = t.actions[i];
      const double begin = over_time.begin[i] * planned_forward, end = over_time.end[i] * planned_forward;
      if (a.kind == action_kind::reshard) continue;  // takes no time
      out.push_back({rank_of_pipeline(r), lane_of(a, part_of(t, r, i)), token(a), begin, end});
      const bool forward = a.kind == action_kind::F;
      const int to = a.stage + (forward ? 1 : -1);
      if (!computes(a.kind) || a.kind == action_kind::W || to < 0 || to >= t.stages() ||
          t.rank_of(to, a.microbatch) == r)
        continue;
      const std::string name =
          fmt::format("{}{}: stage {} -> {}", forward ? "F" : "B", a.microbatch, a.stage, to);
      const int receiver = t.rank_of(to, a.microbatch);
      out.push_back({rank_of_pipeline(r), find_lane(lanes[r], receiver, true), name, end, end + send});
      out.push_back(
          {rank_of_pipeline(receiver), find_lane(lanes[receiver], r, false), name, end, end + send});
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
    step = whole_at<std::int64_t>(all.at("otherData"), "step");
    for (const nlohmann::json& e : all.at("traceEvents"))
      if (e.at("ph") == "X") out.push_back(event_of(plan, e));
  } catch (const nlohmann::json::exception&) {
    refuse_trace();
  }
  check_order(plan, out);
  return out;
}

}  // namespace rankc::codegen
