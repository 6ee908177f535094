// SPDX-License-Identifier: Apache-2.0
#include "verify_read.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <initializer_list>
#include <limits>

namespace rankc::codegen::verifying {

namespace {

using nlohmann::json;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw refusal(fmt::format("not a certificate: {} {}", where, what));
}

/// The object's fields are these and no others.
void expect_fields(const json& j, std::initializer_list<const char*> names, const std::string& where) {
  if (!j.is_object()) refuse(where, "must be an object");
  for (const char* name : names)
    if (!j.contains(name)) refuse(where, fmt::format("has no field \"{}\"", name));
  for (const auto& [key, unused] : j.items())
    if (std::find(names.begin(), names.end(), key) == names.end())
      refuse(where, fmt::format("has a field \"{}\" that means nothing here", key));
}

std::uint64_t to_size(const json& j, const std::string& where) {
  if (!j.is_number_unsigned()) refuse(where, "must be a whole number of 0 or more");
  return j.get<std::uint64_t>();
}

int to_int(const json& j, const std::string& where) {
  if (!j.is_number_integer()) refuse(where, "must be a whole number");
  constexpr auto least = std::numeric_limits<int>::min(), most = std::numeric_limits<int>::max();
  const bool fits = j.is_number_unsigned() ? j.get<std::uint64_t>() <= static_cast<std::uint64_t>(most)
                                           : j.get<std::int64_t>() >= least;
  if (!fits) refuse(where, "is out of range");
  return j.get<int>();
}

std::string to_text(const json& j, const std::string& where) {
  if (!j.is_string()) refuse(where, "must be a string");
  return j.get<std::string>();
}

template <class Each>
auto to_list(const json& j, const std::string& where, Each each) {
  if (!j.is_array()) refuse(where, "must be a list");
  std::vector<decltype(each(j))> result;
  result.reserve(j.size());
  for (const auto& item : j) result.push_back(each(item));
  return result;
}

std::vector<int> to_ints(const json& j, const std::string& where) {
  return to_list(j, where, [&](const json& item) { return to_int(item, where); });
}

std::vector<range> to_ranges(const json& j, const std::string& where) {
  return to_list(j, where, [&](const json& item) {
    if (!item.is_array() || item.size() != 3) refuse(where, "must hold triples [begin, end, value]");
    return range{to_size(item[0], where), to_size(item[1], where), to_int(item[2], where)};
  });
}

step to_step(const json& j) {
  step s;
  if (!j.is_object() || !j.contains("kind") || !j.contains("name"))
    refuse("an op", "must have kind and name");
  s.kind = to_text(j["kind"], "kind");
  s.name = to_text(j["name"], "name");
  const auto where = fmt::format("op \"{}\"", s.name);
  s.point_to_point = s.kind == "send" || s.kind == "receive";
  s.communicates = s.point_to_point || s.kind == "collective";
  if (s.point_to_point)
    expect_fields(j,
                  {"kind", "name", "action", "stream", "waits", "reads", "writes", "communicator", "peer",
                   "bytes", "message", "position"},
                  where);
  else if (s.communicates)
    expect_fields(j,
                  {"kind", "name", "action", "stream", "waits", "reads", "writes", "communicator", "bytes",
                   "message", "position"},
                  where);
  else if (s.kind == "begin" || s.kind == "compute" || s.kind == "end")
    expect_fields(j, {"kind", "name", "action", "stream", "waits", "reads", "writes", "position"}, where);
  else
    refuse(where, fmt::format("is a \"{}\", ops are begin, compute, send, receive, collective, end", s.kind));
  to_int(j["action"], where + ": action");
  s.stream = to_int(j["stream"], where + ": stream");
  s.position = to_int(j["position"], where + ": position");
  s.waits = to_ints(j["waits"], where + ": waits");
  s.reads = to_ranges(j["reads"], where + ": reads");
  s.writes = to_ranges(j["writes"], where + ": writes");
  if (!s.communicates) return s;
  s.communicator = to_int(j["communicator"], where + ": communicator");
  s.message = to_int(j["message"], where + ": message");
  s.bytes = to_size(j["bytes"], where + ": bytes");
  if (s.point_to_point) s.peer = to_int(j["peer"], where + ": peer");
  return s;
}

}  // namespace

document read(const std::string& json_text) {
  const json j = json::parse(json_text, nullptr, false);
  if (j.is_discarded()) refuse("the text", "is not JSON");
  expect_fields(j, {"format", "plan", "plan_hash", "streams", "communicators", "world", "represented", "ranks"}, "the document");
  if (j["format"] != "rankc certificate 1") refuse("format", "must be \"rankc certificate 1\"");
  to_text(j["plan"], "plan");
  const auto hash = to_text(j["plan_hash"], "plan_hash");
  if (hash.size() != 16 || hash.find_first_not_of("0123456789abcdef") != std::string::npos)
    refuse("plan_hash", "must be 16 hexadecimal digits");
  document d;
  d.streams = to_int(j["streams"], "streams");
  d.groups = to_list(j["communicators"], "communicators", [](const json& c) {
    expect_fields(c, {"name", "ranks"}, "a communicator");
    return group{to_text(c["name"], "name"), to_ints(c["ranks"], "ranks")};
  });
  d.workers = to_list(j["ranks"], "ranks", [](const json& w) {
    expect_fields(w, {"rank", "arena_bytes", "ops"}, "a rank");
    return worker{to_size(w["arena_bytes"], "arena_bytes"), to_list(w["ops"], "ops", to_step), to_int(w["rank"], "rank")};
  });
  const int world = to_int(j["world"], "world"), ranks = static_cast<int>(d.workers.size());
  if (world < ranks || j["represented"].is_null() != (world == ranks))
    refuse("world", fmt::format("is {} for {} ranks; where these are fewer, \"represented\" says whom they stand for", world, ranks));
  for (int r = 0; r < ranks; ++r)
    if (const int number = d.workers[r].number; number >= world || number < (r > 0 ? d.workers[r - 1].number + 1 : 0))
      refuse("rank", fmt::format("is {}; ranks ascend from 0 to {}", number, world - 1));
  return d;
}

}  // namespace rankc::codegen::verifying
