// SPDX-License-Identifier: Apache-2.0
// A step over time as a file of trace events, for chrome://tracing, Perfetto and `timeline --measured`. The
// generator writes planned steps and the trainer measured ones, so both have one format.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <cstdio>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankc::runtime {

/// The header of a trace. `times` is "planned" or "measured". `step` counts from 1; a planned step has 0.
struct trace_head {
  std::string plan, times;
  std::int64_t step = 0;
  std::vector<rank_row> ranks;                  // by rank; a rank with events is one process of the trace
  std::vector<std::vector<std::string>> lanes;  // their names, by pipeline coordinate
};

/// A string as JSON writes it.
inline std::string json_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= ' ') out += c;
  }
  return out + '"';
}

inline constexpr std::string_view trace_begin = "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"plan\":";

/// True if a file with these first bytes is a trace.
inline bool is_trace(std::string_view beginning) { return beginning.starts_with(trace_begin); }

/// The events as JSON: pid is the rank, tid the lane.
/// Units: microseconds, to the nanosecond.
/// Source: Trace Event Format (Google), complete ("X") and metadata ("M") events.
inline std::string trace_events(const trace_head& head, std::span<const traced> events) {
  std::string out = std::string(trace_begin) + json_text(head.plan) + ",\"times\":" + json_text(head.times) +
                    ",\"step\":" + std::to_string(head.step) + "},\n\"traceEvents\":[";
  const char* separator = "\n";
  const auto add = [&](const std::string& fields) {
    out += separator + ("{" + fields + "}");
    separator = ",\n";
  };
  const auto of = [](int rank, int lane) {
    return ",\"pid\":" + std::to_string(rank) + ",\"tid\":" + std::to_string(lane);
  };
  std::set<std::pair<int, int>> named;
  for (const traced& e : events) {
    if (!named.insert({e.rank, e.lane}).second) continue;
    const rank_row& row = head.ranks[static_cast<std::size_t>(e.rank)];
    if (named.insert({e.rank, -1}).second)
      add("\"name\":\"process_name\",\"ph\":\"M\"" + of(e.rank, 0) + ",\"args\":{\"name\":\"rank " +
          std::to_string(e.rank) + ": pp " + std::to_string(row.pp) + ", dp " + std::to_string(row.dp) +
          ", tp " + std::to_string(row.tp) + " (" + head.times + ")\"}");
    add("\"name\":\"thread_name\",\"ph\":\"M\"" + of(e.rank, e.lane) + ",\"args\":{\"name\":" +
        json_text(head.lanes[static_cast<std::size_t>(row.pp)][static_cast<std::size_t>(e.lane)]) + "}");
  }
  for (const traced& e : events) {
    char times[96];
    std::snprintf(times, sizeof times, ",\"ts\":%.3f,\"dur\":%.3f", e.begin, e.end - e.begin);
    add("\"name\":" + json_text(e.name) + ",\"ph\":\"X\"" + of(e.rank, e.lane) + times);
  }
  return out + "\n]}\n";
}

}  // namespace rankc::runtime
