// SPDX-License-Identifier: Apache-2.0
#include "verify_read.hpp"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <tuple>
#include <utility>

#include "trusted.hpp"
#include "verify_json.hpp"

namespace rankc::codegen::verifying {

namespace {

constexpr const char* format = "rankc certificate 10";

bool is_list_of(const json& j, std::size_t count) { return j.is_array() && j.size() == count; }

std::vector<range> to_ranges(const json& j, bool writes, const std::string& where) {
  return to_list(j, where, [&](const json& item) {
    if (writes && !is_list_of(item, 5))
      refuse("RC7115: certificate: {} must list [begin, end, value, type, replaces]", where);
    if (!writes && !is_list_of(item, 4))
      refuse("RC7116: certificate: {} must list [begin, end, value, type]", where);
    return range{to_size(item[0], where), to_size(item[1], where), to_int(item[2], where),
                 to_word(item[3], {"bytes", "i32", "bf16", "f32", "f64", "e4m3", "e5m2", "e4m3_rows"}, where),
                 writes ? to_int(item[4], where) : -1};
  });
}

std::pair<std::uint64_t, std::uint64_t> to_stretch(const json& j, const std::string& where) {
  if (!is_list_of(j, 2)) refuse("RC7117: certificate: {} must have bytes [begin, end]", where);
  return {to_size(j[0], where), to_size(j[1], where)};
}

total to_total(const json& j) {
  expect_fields(j, {"kind", "name", "at", "over", "from", "terms", "updates", "counted"}, "a sum");
  total t;
  t.name = to_text(j["name"], "name");
  const auto where = "sum \"" + t.name + "\"";
  t.kind = to_word(j["kind"], {"gradient", "loss", "norm", "choices"}, where);
  std::tie(t.begin, t.end) = to_stretch(j["at"], where);
  t.over = to_list(j["over"], where, [&](const json& o) {
    if (!is_list_of(o, 2)) refuse("RC7118: certificate: {} must be over pairs [communicator, letter]", where);
    return std::pair(to_int(o[0], where), to_word(o[1], {"P", "R", "S", "D"}, where)[0]);
  });
  t.from = to_stretch(j["from"], where);
  t.terms = to_int(j["terms"], where);
  t.updates = to_list(j["updates"], where, [&](const json& u) { return to_stretch(u, where); });
  t.counted = to_flag(j["counted"], where + ": counted");
  return t;
}

port_view to_view(const json& j, const std::string& where) {
  if (!is_list_of(j, 8) && !is_list_of(j, 10))
    refuse(
        "RC7119: certificate: {} must list [port, use, first, count, offset, shape, unit, stride], and a "
        "rate and a mean where a router's bias is balanced",
        where);
  port_view v{to_text(j[0], where),  to_word(j[1], {"in", "out", "add"}, where),
              to_int(j[2], where),   to_int(j[3], where),
              to_size(j[4], where),  to_counts(j[5], where),
              to_count(j[6], where), to_count(j[7], where)};
  if (v.shape.size() > 2)
    refuse("RC7120: certificate: {} must have two dims at most, found {}", where, v.shape.size());
  if (j.size() > 8) v.balances = to_balance(j[8], j[9], where);
  return v;
}

held to_held(const json& j, const std::string& where) {
  if (!is_list_of(j, 6) && !is_list_of(j, 7))
    refuse(
        "RC7121: certificate: {} must list [kind, name, counts, positions, dim, theta], and a scaling where "
        "rotary positions are scaled",
        where);
  return {to_word(j[0],
                  {"weight", "working copy", "first moment", "second moment", "padding", "rotary", "ids",
                   "targets", "starts", "loss", "norm"},
                  where),
          to_text(j[1], where),
          to_counts(j[2], where),
          to_count(j[3], where),
          to_count(j[4], where),
          to_number(j[5], where),
          j.size() > 6 ? to_scaling(j[6], where) : rope_scaling{}};
}

instruction to_instruction(const json& j) {
  instruction s;
  if (!j.is_object() || !j.contains("kind") || !j.contains("name"))
    refuse("RC7122: certificate: an op must be an object with a kind and a name");
  s.kind = to_text(j["kind"], "kind");
  s.name = to_text(j["name"], "name");
  const auto where = "op \"" + s.name + "\"";
  s.point_to_point = s.kind == "send" || s.kind == "receive";
  s.communicates = s.point_to_point || s.kind == "collective";
  std::vector<const char*> fields{"kind", "name", "stream", "waits", "reads", "writes", "views", "position"};
  if (s.communicates)
    fields.insert(fields.end(), {"communicator", s.point_to_point ? "peer" : "does", "bytes", "message"});
  if (s.kind == "collective") fields.insert(fields.end(), {"in_bf16", "by_rows"});
  const auto does = [&](const char* what) {
    return s.kind == "collective" && j.contains("does") && j["does"] == what;
  };
  const bool exchanges = does("all_to_all"), sends_slots = does("to_experts") || does("from_experts") ||
                                                           does("share_offsets") || does("gather_offsets");
  if (exchanges) fields.push_back("seq");
  if (sends_slots) fields.push_back("rows");
  if (s.kind != "begin" && s.kind != "end") fields.push_back("operands");
  if (s.kind == "compute") fields.insert(fields.end(), {"row", "rows", "seq", "number", "given"});
  else if (s.kind == "begin" || s.kind == "end") fields.push_back("holds");
  else if (!s.communicates)
    refuse(
        "RC7123: certificate: {} must be of kind begin, compute, send, receive, collective or end, found "
        "\"{}\"",
        where, s.kind);
  expect_fields(j, fields, where);
  s.stream = to_int(j["stream"], where + ": stream");
  s.position = to_int(j["position"], where + ": position");
  s.waits = to_ints(j["waits"], where + ": waits");
  s.reads = to_ranges(j["reads"], false, where + ": reads");
  s.writes = to_ranges(j["writes"], true, where + ": writes");
  s.views = to_list(j["views"], where, [&](const json& v) { return to_view(v, where + ": views"); });
  if (s.kind == "begin" || s.kind == "end")
    s.holds = to_list(j["holds"], where, [&](const json& h) { return to_held(h, where + ": holds"); });
  if (s.kind == "compute") {
    s.row = to_text(j["row"], where + ": row");
    s.rows = to_count(j["rows"], where + ": rows");
    s.seq = to_count(j["seq"], where + ": seq");
    s.number = to_number(j["number"], where + ": number");
    s.given = to_list(j["given"], where, [&](const json& n) { return to_number(n, where + ": given"); });
  }
  if (s.kind != "begin" && s.kind != "end")
    s.operands =
        to_list(j["operands"], where, [&](const json& at) { return to_size(at, where + ": operands"); });
  if (!s.communicates) return s;
  s.communicator = to_int(j["communicator"], where + ": communicator");
  s.message = to_int(j["message"], where + ": message");
  s.bytes = to_size(j["bytes"], where + ": bytes");
  if (s.point_to_point) {
    s.peer = to_int(j["peer"], where + ": peer");
    return s;
  }
  s.does = to_word(j["does"],
                   {"all_reduce", "all_reduce_max", "all_gather", "reduce_scatter", "all_to_all", "shift",
                    "shift_back", "to_experts", "from_experts", "share_offsets", "gather_offsets"},
                   where + ": does");
  if (exchanges) s.seq = to_count(j["seq"], where + ": seq");
  if (sends_slots) s.rows = to_count(j["rows"], where + ": rows");
  s.in_bf16 = to_flag(j["in_bf16"], where + ": in_bf16");
  s.by_rows = to_int(j["by_rows"], where + ": by_rows");
  if (s.by_rows < 0 || s.by_rows > 2)
    refuse("RC7124: certificate: {}: by_rows must be 0, 1 or 2, found {}", where, s.by_rows);
  return s;
}

/// The values of a rank, from the runs in which they are numbered.
std::vector<int> to_values(const json& j, std::size_t most) {
  std::vector<int> values;
  for (const auto& run : to_list(j, "values", [](const json& r) { return to_ints(r, "values"); })) {
    if (run.size() != 2 || run[1] < 1 || static_cast<std::size_t>(run[1]) > most - values.size() ||
        run[0] > std::numeric_limits<int>::max() - run[1])
      refuse(
          "RC7125: certificate: the values of a rank must be pairs [first, count] of as many values as its "
          "ops name, {}",
          most);
    for (int i = 0; i < run[1]; ++i) values.push_back(run[0] + i);
  }
  return values;
}

/// Numbers of a rank, from pairs [number, how often].
std::vector<std::int64_t> to_firsts(const json& j, std::size_t count) {
  std::vector<std::int64_t> all;
  for (const auto& run : to_list(j, "firsts", [](const json& r) { return to_counts(r, "firsts"); })) {
    if (run.size() != 2 || run[1] < 1 || static_cast<std::size_t>(run[1]) > count - all.size())
      refuse(
          "RC7126: certificate: the firsts of a rank must be pairs [number, count] of as many numbers as its "
          "ops have views and box dims, {}",
          count);
    all.insert(all.end(), static_cast<std::size_t>(run[1]), run[0]);
  }
  if (all.size() != count)
    refuse("RC7127: certificate: a rank has {} firsts for ops that have {} views and box dims", all.size(),
           count);
  return all;
}

/// How many shards a routine says nothing of: of each view, and of each dim of a box.
std::size_t count_firsts(const routine& r) {
  std::size_t n = 0;
  for (const auto& i : r.instructions) {
    n += i.views.size();
    for (const auto& h : i.holds) n += h.counts.size();
  }
  return n;
}

/// How many values a routine names: all below this.
std::size_t count_values(const routine& r) {
  int most = -1;
  for (const auto& i : r.instructions)
    for (const auto* ranges : {&i.reads, &i.writes})
      for (const auto& x : *ranges) most = std::max(most, x.value);
  return static_cast<std::size_t>(most) + 1;
}

std::vector<listed_axis> to_mesh(const json& j) {
  return to_list(j, "represented", [](const json& a) {
    constexpr const char* where = "an axis of \"represented\"";
    if (!is_list_of(a, 3)) refuse("RC7254: certificate: {} must list [name, size, listed]", where);
    return listed_axis{to_text(a[0], where), to_int(a[1], where), to_int(a[2], where)};
  });
}

/// Builds the document while the text is parsed: an op is taken as soon as it is read, so that the ops are
/// never all there as JSON.
class reader {
 public:
  file run(const std::string& text) {
    const json j = json::parse(
        text,
        [this](int depth, json::parse_event_t event, json& parsed) { return keep(depth, event, parsed); },
        false);
    if (j.is_discarded()) refuse("RC7128: certificate: the text is not JSON");
    if (j.is_object() && j.contains("format"))
      for (const auto& [older, lacks] :
           {std::pair("rankc certificate 1", "gradients"), std::pair("rankc certificate 2", "views"),
            std::pair("rankc certificate 3", "places from which sums are reduce-scattered"),
            std::pair("rankc certificate 4", "optimizer"),
            std::pair("rankc certificate 5", "types that sums are sent in"),
            std::pair("rankc certificate 6", "row-pipelined collectives"),
            std::pair("rankc certificate 7", "ops that run while rows move"),
            std::pair("rankc certificate 8",
                      "tables and padding that a step leaves, the rounding of each op, and the target of its "
                      "kernels"),
            std::pair("rankc certificate 9", "operands of calls")})
        if (j["format"] == older)
          refuse(
              "RC7129: certificate: the format is \"{}\", which has no {}; expected \"{}\": write the "
              "certificate again",
              older, lacks, format);
    expect_fields(j, {"format", "plan", "plan_hash", "trusted", "world", "represented", "model", "steps"},
                  "the document");
    if (j["format"] != format)
      refuse("RC7130: certificate: the format must be \"{}\", found {}", format, found(j["format"]));
    const auto plan = to_text(j["plan"], "plan");
    const auto assumed =
        to_list(j["trusted"], "trusted", [](const json& t) { return to_text(t, "trusted"); });
    if (!std::equal(assumed.begin(), assumed.end(), std::begin(trusted), std::end(trusted)))
      refuse(
          "RC7131: certificate: \"trusted\" must name, in full, all that no checker can know from the file");
    const auto hash = to_text(j["plan_hash"], "plan_hash");
    if (hash.size() != 16 || hash.find_first_not_of("0123456789abcdef") != std::string::npos)
      refuse("RC7132: certificate: plan_hash must be 16 hexadecimal digits in lower case, found {}",
             found(j["plan_hash"]));
    world_ = to_int(j["world"], "world");
    auto steps = to_list(j["steps"], "steps", [&](const json& s) { return to_step(s); });
    if (steps.empty()) refuse("RC7133: certificate: steps must have a step");
    if (taken_ != bodies_.size()) refuse("RC7134: certificate: a step has \"programs\" twice");
    const std::vector<listed_axis> mesh =
        j["represented"].is_null() ? std::vector<listed_axis>{} : to_mesh(j["represented"]);
    for (auto& s : steps) {
      s.mesh = mesh;
      check_world(s);
    }
    check_names(steps);
    return {plan, hash, assumed, std::move(steps), to_model(j["model"])};
  }

 private:
  /// Whether a part of the text stays for later. `path_` holds the keys down to it.
  bool keep(int depth, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::key) {
      path_.resize(static_cast<std::size_t>(depth) / 2);
      path_.push_back(parsed.get<std::string>());
      if (depth == 5 && is_at({"steps", "programs", "ops"}) && !instructions_.empty())
        refuse("RC7135: certificate: a program has \"ops\" twice");
    }
    if (event != json::parse_event_t::object_end) return true;
    path_.resize(static_cast<std::size_t>(depth) / 2);
    if (depth == 4 && is_at({"steps", "programs"})) bodies_.push_back(std::exchange(instructions_, {}));
    if (depth != 6 || !is_at({"steps", "programs", "ops"})) return true;
    instructions_.push_back(to_instruction(parsed));
    return false;
  }
  bool is_at(std::initializer_list<const char*> keys) const {
    return std::equal(path_.begin(), path_.end(), keys.begin(), keys.end());
  }

  routine to_routine(const json& j) {
    expect_fields(j, {"arena_bytes", "ops", "sums"}, "a program");
    if (!j["ops"].is_array() || !j["ops"].empty() || taken_ == bodies_.size())
      refuse("RC7136: certificate: the ops of a program must be a list of objects");
    return {to_size(j["arena_bytes"], "arena_bytes"), std::move(bodies_[taken_++]),
            to_list(j["sums"], "sums", to_total)};
  }

  document to_step(const json& j) {
    expect_fields(j, {"step", "kernels", "deterministic", "streams", "communicators", "programs", "ranks"},
                  "a step");
    document d;
    d.world = world_;
    d.step = to_word(j["step"], {"train", "evaluate"}, "step");
    d.on_host = to_word(j["kernels"], {"host", "cuda"}, "the kernels of a step") == "host";
    d.deterministic = to_flag(j["deterministic"], "deterministic");
    d.streams = to_int(j["streams"], "streams");
    d.groups = to_list(j["communicators"], "communicators", [](const json& c) {
      expect_fields(c, {"name", "ranks", "size", "one_layout", "along"}, "a communicator");
      return group{to_text(c["name"], "name"), to_ints(c["ranks"], "ranks"), to_int(c["size"], "size"),
                   to_flag(c["one_layout"], "one_layout"), to_ints(c["along"], "along")};
    });
    d.routines = to_list(j["programs"], "programs", [&](const json& r) { return to_routine(r); });
    std::vector<std::size_t> values, firsts;
    for (const auto& r : d.routines) {
      values.push_back(count_values(r));
      firsts.push_back(count_firsts(r));
    }
    d.workers = to_list(j["ranks"], "ranks", [&](const json& w) {
      expect_fields(w, {"rank", "program", "communicators", "values", "firsts"}, "a rank");
      worker made{to_int(w["rank"], "rank"),
                  to_int(w["program"], "program"),
                  to_ints(w["communicators"], "communicators"),
                  {},
                  {}};
      if (made.routine < 0 || made.routine >= static_cast<int>(values.size()))
        refuse("RC7137: certificate: a rank runs program {}; the step has {} programs", made.routine,
               values.size());
      const std::size_t named = values[made.routine];
      made.values = to_values(w["values"], named);
      if (made.values.size() != named)
        refuse("RC7138: certificate: a rank has {} values for ops that name {}", made.values.size(), named);
      made.firsts = to_firsts(w["firsts"], firsts[made.routine]);
      return made;
    });
    return d;
  }

  static void check_names(const std::vector<document>& steps) {
    for (std::size_t s = 1; s < steps.size(); ++s)
      for (std::size_t k = 0; k < s; ++k)
        if (steps[s].step == steps[k].step)
          refuse("RC7280: certificate: two steps are called {}; expected each once", steps[s].step);
  }

  static void check_world(const document& d) {
    const int ranks = static_cast<int>(d.workers.size()), world = d.world;
    if (world < ranks) refuse("RC7139: certificate: the world has {} ranks, but a step has {}", world, ranks);
    if (d.mesh.empty() && world > ranks)
      refuse(
          "RC7140: certificate: the world has {} ranks and a step has {}: \"represented\" must say which "
          "ranks these stand for",
          world, ranks);
    if (!d.mesh.empty() && world == ranks)
      refuse("RC7141: certificate: a step has all {} ranks of the world: \"represented\" must be null",
             world);
    for (int r = 0; r < ranks; ++r)
      if (const int number = d.workers[r].number;
          number >= world || number < (r > 0 ? d.workers[r - 1].number + 1 : 0))
        refuse("RC7142: certificate: rank {} is out of order: the ranks of a step must rise within 0..{}",
               number, world - 1);
  }

  int world_ = 0;
  std::vector<std::string> path_;
  std::vector<instruction> instructions_;         // of the program that is being read
  std::vector<std::vector<instruction>> bodies_;  // of the programs that have been
  std::size_t taken_ = 0;
};

}  // namespace

file read(const std::string& json_text) { return reader().run(json_text); }

}  // namespace rankc::codegen::verifying
