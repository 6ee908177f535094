// SPDX-License-Identifier: Apache-2.0
// Prints the certificate. The layout is by hand so that a line is an op; each op's text is the JSON
// library's.
#include <rankc/codegen/certificate.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>

namespace rankc::codegen {

namespace {

using json = nlohmann::ordered_json;

const char* name_of(op_kind kind) {
  switch (kind) {
    case op_kind::begin:
      return "begin";
    case op_kind::compute:
      return "compute";
    case op_kind::send:
      return "send";
    case op_kind::receive:
      return "receive";
    case op_kind::collective:
      return "collective";
    case op_kind::end:
      return "end";
  }
  return "unknown";
}

std::string text(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

json to_json(const std::vector<access>& accesses) {
  json list = json::array();
  for (const auto& a : accesses) list.push_back({a.begin, a.end, a.value});
  return list;
}

json to_json(const op& o) {
  json j{{"kind", name_of(o.kind)}, {"name", o.name}, {"action", o.action}, {"stream", o.stream}};
  j["waits"] = o.waits;
  j["reads"] = to_json(o.reads);
  j["writes"] = to_json(o.writes);
  const bool point_to_point = o.kind == op_kind::send || o.kind == op_kind::receive;
  if (point_to_point || o.kind == op_kind::collective) {
    j["communicator"] = o.communicator;
    if (point_to_point) j["peer"] = o.peer;
    j["bytes"] = o.bytes;
    j["message"] = o.message;
  }
  return j;
}

}  // namespace

std::string certificate(const program& p, const verdict& v) {
  std::string out = "{\n\"format\": \"rankc certificate 1\",\n";
  out += fmt::format("\"plan\": {},\n\"plan_hash\": \"{:016x}\",\n", text(p.plan), p.plan_hash);
  out += fmt::format("\"streams\": {},\n\"communicators\": [", p.streams);
  for (std::size_t c = 0; c < p.communicators.size(); ++c)
    out += (c == 0 ? "\n" : ",\n") +
           text(json{{"name", p.communicators[c].name}, {"ranks", p.communicators[c].ranks}});
  const std::size_t world = std::max(static_cast<std::size_t>(p.world), p.ranks.size());
  out += fmt::format("\n],\n\"world\": {},\n\"represented\": {},\n\"ranks\": [", world,
                     world == p.ranks.size() ? "null" : text("ranks that differ in dp and tp alone, by those at 0 and 1"));
  for (std::size_t r = 0; r < p.ranks.size(); ++r) {
    const auto& rank = p.ranks[r];
    out += fmt::format("{}\n{{\"rank\": {}, \"arena_bytes\": {}, \"ops\": [", r == 0 ? "" : ",",
                       rank.number < 0 ? static_cast<int>(r) : rank.number, rank.arena_bytes);
    for (std::size_t i = 0; i < rank.ops.size(); ++i) {
      json j = to_json(rank.ops[i]);
      if (r < v.position.size()) j["position"] = v.position[r][i];
      out += (i == 0 ? "\n" : ",\n") + text(j);
    }
    out += "\n]}";
  }
  return out + "\n]\n}\n";
}

}  // namespace rankc::codegen
