// SPDX-License-Identifier: Apache-2.0
// Prints the certificate. The layout is by hand so that a line is an op; what a plan names is quoted by the
// JSON library.
#include <rankc/codegen/certificate.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <unordered_map>

#include "trusted.hpp"

namespace rankc::codegen {

namespace {

/// How rotary positions are slowed, as one more element of a list; empty where they are not.
std::string scaling_text(const rope_scaling& s) {
  if (s.by == rope_scaling::none) return "";
  return fmt::format(",[\"{}\",{},{},{},{}]", name_of(s.by), s.factor, s.low_freq_factor, s.high_freq_factor,
                     s.original_positions);
}

std::string balance_text(const load_balance& by) {
  return by.any() ? fmt::format(",{},{}", by.rate, by.mean) : "";
}

/// How an op's operands are rounded, as one more element of a list; empty where they are not.
std::string rounding_text(specification::rounding by) {
  constexpr std::string_view texts[]{"", ",\"fp8\"", ",\"fp8_rows\""};  // none, fp8, fp8_rows
  return std::string(texts[static_cast<int>(by)]);
}

/// A tensor of the model: its shape, the unit of its last dim, and that of its first where it has one.
std::string tensor_text(const specification::tensor& t) {
  const std::string of_rows = t.unit_of_rows == 1 ? "" : fmt::format(",{}", t.unit_of_rows);
  return fmt::format("[[{}],{}{}]", fmt::join(t.shape, ","), t.unit, of_rows);
}

std::string quoted(const std::string& s) {
  return nlohmann::json(s).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

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

/// Numbers from 0 in the order in which they are first asked for.
class numbering {
 public:
  int of(int known) {
    const auto [at, fresh] = number_.try_emplace(known, static_cast<int>(meaning_.size()));
    if (fresh) meaning_.push_back(known);
    return at->second;
  }
  const std::vector<int>& meaning() const { return meaning_; }

 private:
  std::unordered_map<int, int> number_;
  std::vector<int> meaning_;
};

/// A rank as two texts: what it runs, which other ranks may run too, and what the numbers in there mean to
/// it.
class rank_text {
 public:
  rank_text(const program& p, const verdict& v, std::size_t rank) : p_(p), rank_(p.ranks[rank]) {
    fmt::format_to(to(), "{{\"arena_bytes\": {}, \"ops\": [", rank_.arena_bytes);
    for (std::size_t i = 0; i < rank_.ops.size(); ++i) {
      program_ += i == 0 ? "\n" : ",\n";
      add(rank_.ops[i], rank < v.position.size() ? v.position[rank][i] : -1);
    }
    program_ += "\n], \"sums\": [";
    for (const sum& x : rank_.sums) add(x);
    program_ += "]}";
  }

  const std::string& program() const { return program_; }

  std::string line(std::size_t number, std::size_t program_index) const {
    return fmt::format(
        "{{\"rank\": {}, \"program\": {}, \"communicators\": [{}], \"values\": [{}], \"firsts\": [{}]}}",
        rank_.number < 0 ? static_cast<int>(number) : rank_.number, program_index,
        fmt::join(communicators_.meaning(), ","), runs(values_.meaning()), equal_runs(firsts_));
  }

 private:
  std::back_insert_iterator<std::string> to() { return std::back_inserter(program_); }

  void add(const char* field, const std::vector<access>& accesses, bool writes) {
    fmt::format_to(to(), ",\"{}\":[", field);
    for (const auto& a : accesses) {
      fmt::format_to(to(), "{}[{},{},{},\"{}\"", &a == accesses.data() ? "" : ",", a.begin, a.end,
                     values_.of(a.value), element_type_names[static_cast<int>(a.type)]);
      if (writes) fmt::format_to(to(), ",{}", a.replaces);
      program_ += ']';
    }
    program_ += ']';
  }

  static const char* direction(const view& v) {
    if (!v.written) return "in";
    return v.adds ? "add" : "out";
  }
  /// A view without the place where its shard begins. The rank's line has that, as it has those of held
  /// boxes.
  void add(const view& v) {
    fmt::format_to(to(), "[\"{}\",\"{}\",{},{},{},[{}],{},{}{}]", v.port, direction(v), v.accesses.first,
                   v.accesses.count, v.offset, fmt::join(v.shape, ","), v.unit, v.stride,
                   balance_text(v.balances));
    firsts_.push_back(v.first);
  }

  void add(const holding& h) {
    fmt::format_to(to(), "[\"{}\",{},[", holding_names[static_cast<int>(h.kind)], quoted(h.name));
    for (const box_range& b : h.box) {
      fmt::format_to(to(), "{}{}", &b == h.box.data() ? "" : ",", b.count);
      firsts_.push_back(b.first);
    }
    fmt::format_to(to(), "],{},{},{}{}]", h.positions, h.dim, h.theta, scaling_text(h.scaling));
  }

  template <class Entry>
  void add_list(const char* field, const std::vector<Entry>& entries) {
    fmt::format_to(to(), ",\"{}\":[", field);
    for (const Entry& e : entries) {
      if (&e != entries.data()) program_ += ',';
      add(e);
    }
    program_ += ']';
  }

  void add(const sum& s) {
    fmt::format_to(to(), "{}\n{{\"kind\":\"{}\",\"name\":{},\"at\":[{},{}],\"over\":[",
                   &s == rank_.sums.data() ? "" : ",", sum_kind_names[static_cast<int>(s.kind)],
                   quoted(s.name), s.at.begin, s.at.end);
    for (const auto& o : s.over)
      fmt::format_to(to(), "{}[{},\"{}\"]", &o == s.over.data() ? "" : ",", communicators_.of(o.communicator),
                     placement_letters[static_cast<int>(o.as)]);
    const byte_range& from = s.collected == byte_range{} ? s.at : s.collected;
    fmt::format_to(to(), "],\"from\":[{},{}],\"terms\":{},\"updates\":[", from.begin, from.end, s.terms);
    for (const auto& u : s.updates)
      fmt::format_to(to(), "{}[{},{}]", &u == s.updates.data() ? "" : ",", u.begin, u.end);
    fmt::format_to(to(), "],\"counted\":{}}}", s.counted);
  }

  void add(const op& o, int position) {
    fmt::format_to(to(), "{{\"kind\":\"{}\",\"name\":{},\"stream\":{},\"waits\":[{}]", name_of(o.kind),
                   quoted(o.name), o.stream, fmt::join(o.waits, ","));
    add("reads", o.reads, false);
    add("writes", o.writes, true);
    add_list("views", o.views);
    if (o.kind == op_kind::begin || o.kind == op_kind::end) add_list("holds", o.holds);
    else fmt::format_to(to(), ",\"operands\":[{}]", fmt::join(o.operands, ","));
    if (o.kind == op_kind::compute)
      fmt::format_to(to(), ",\"row\":{},\"rows\":{},\"seq\":{},\"number\":{},\"given\":[{}]",
                     quoted(std::string(o.row)), o.rows, o.seq, o.number, fmt::join(o.given, ","));
    const bool point_to_point = o.kind == op_kind::send || o.kind == op_kind::receive;
    if (point_to_point || o.kind == op_kind::collective) {
      fmt::format_to(to(), ",\"communicator\":{}", communicators_.of(o.communicator));
      if (point_to_point) fmt::format_to(to(), ",\"peer\":{}", place_of_peer(o));
      else
        fmt::format_to(to(), ",\"does\":\"{}\",\"in_bf16\":{},\"by_rows\":{}",
                       collective_kind_names[static_cast<int>(o.does)], o.in_bf16, o.by_rows);
      if (o.kind == op_kind::collective && o.does == collective_kind::all_to_all)
        fmt::format_to(to(), ",\"seq\":{}", o.seq);
      if (o.kind == op_kind::collective && exchanges_slots(o.does))
        fmt::format_to(to(), ",\"rows\":{}", o.rows);
      fmt::format_to(to(), ",\"bytes\":{},\"message\":{}", o.bytes, o.message);
    }
    fmt::format_to(to(), ",\"position\":{}}}", position);
  }

  /// Among the ranks of the communicator; -1: it is none of them.
  int place_of_peer(const op& o) const {
    if (o.communicator < 0 || o.communicator >= static_cast<int>(p_.communicators.size())) return -1;
    const auto& ranks = p_.communicators[o.communicator].ranks;
    const auto at = std::find(ranks.begin(), ranks.end(), o.peer);
    return at == ranks.end() ? -1 : static_cast<int>(at - ranks.begin());
  }

  /// As pairs: a number, and how many follow upwards from it.
  static std::string runs(const std::vector<int>& numbers) {
    std::string text;
    for (std::size_t i = 0, stop; i < numbers.size(); i = stop) {
      for (stop = i + 1; stop < numbers.size() && numbers[stop] == numbers[stop - 1] + 1;) ++stop;
      fmt::format_to(std::back_inserter(text), "{}[{},{}]", i == 0 ? "" : ",", numbers[i], stop - i);
    }
    return text;
  }

  /// As pairs: a number, and how often it follows itself.
  static std::string equal_runs(const std::vector<std::int64_t>& numbers) {
    std::string text;
    for (std::size_t i = 0, stop; i < numbers.size(); i = stop) {
      for (stop = i + 1; stop < numbers.size() && numbers[stop] == numbers[i];) ++stop;
      fmt::format_to(std::back_inserter(text), "{}[{},{}]", i == 0 ? "" : ",", numbers[i], stop - i);
    }
    return text;
  }

  const codegen::program& p_;
  const rank_program& rank_;
  numbering communicators_, values_;
  std::vector<std::int64_t> firsts_;
  std::string program_;
};

std::size_t world_of(const program& p) { return std::max(static_cast<std::size_t>(p.world), p.ranks.size()); }

std::string step_text(const program& p, const verdict& v) {
  std::string out = fmt::format(
      "{{\"step\": {}, \"kernels\": \"{}\", \"deterministic\": {}, \"streams\": {}, \"communicators\": [",
      quoted(p.step), p.calls.on_host ? "host" : "cuda", p.calls.deterministic, p.streams);
  for (const auto& c : p.communicators)
    out += fmt::format("{}{{\"name\":{},\"ranks\":[{}],\"size\":{},\"one_layout\":{},\"along\":[{}]}}",
                       &c == p.communicators.data() ? "\n" : ",\n", quoted(c.name), fmt::join(c.ranks, ","),
                       c.members(), c.one_layout, fmt::join(c.along, ","));
  std::unordered_map<std::string, std::size_t> known;
  std::string ranks;
  out += "\n],\n\"programs\": [";
  for (std::size_t r = 0; r < p.ranks.size(); ++r) {
    const rank_text text(p, v, r);
    const auto [at, fresh] = known.try_emplace(text.program(), known.size());
    if (fresh) out += (known.size() == 1 ? "\n" : ",\n") + text.program();
    ranks += (r == 0 ? "\n" : ",\n") + text.line(r, at->second);
  }
  return out + "\n],\n\"ranks\": [" + ranks + "\n]}";
}

/// The facts of a user's rows, a row a line, without the rows of unknown facts.
std::string row_facts_text(const std::vector<specification::row_facts>& rows) {
  std::string out;
  for (const auto& r : rows)
    if (r.unknown.empty())
      out += fmt::format("{}\n[{},{},{},{},{},{}]", out.empty() ? "" : ",", quoted(r.row), quoted(r.ports),
                         quoted(r.rule), quoted(r.needs), quoted(r.attributes), quoted(r.gradients));
  return out;
}

/// The model as it is on one device, an op a line; null where nothing is known of it.
std::string model_text(const specification& s) {
  if (s.layers.empty()) return "null";
  std::string out = "{\"layers\": [";
  for (const auto& l : s.layers) {
    out += fmt::format("{}\n{{\"name\": {}, \"values\": [", &l == s.layers.data() ? "" : ",", quoted(l.name));
    for (const auto& v : l.values) out += (&v == l.values.data() ? "" : ",") + tensor_text(v);
    out += "], \"ops\": [";
    for (const auto& o : l.ops)
      out += fmt::format("{}\n[{},[{}],[{}],{},{},{}{}{}]", &o == l.ops.data() ? "" : ",", quoted(o.row),
                         fmt::join(o.in, ","), fmt::join(o.out, ","), o.rows, o.seq, o.number,
                         scaling_text(o.scaling), rounding_text(o.operands));
    out += fmt::format(
        "\n], \"input\": {}, \"targets\": {}, \"result\": {}, {}{}\"side_losses\": [{}], \"parameters\": [",
        l.input, l.targets, l.result, l.starts < 0 ? "" : fmt::format("\"starts\": {}, ", l.starts),
        l.statistics < 0 && l.statistics_result < 0
            ? ""
            : fmt::format("\"statistics\": [{},{}], ", l.statistics, l.statistics_result),
        fmt::join(l.side_losses, ","));
    for (const auto& p : l.parameters)
      out += fmt::format("{}[{},{},{}{}]", &p == l.parameters.data() ? "" : ",", quoted(p.name), p.value,
                         p.trainable, balance_text(p.balances));
    out += "]}";
  }
  out += "\n], \"uses\": [";
  for (const auto& u : s.uses) {
    out += fmt::format("{}\n[{},{},[", &u == s.uses.data() ? "" : ",", u.layer, quoted(u.name));
    for (const auto& name : u.parameters) out += (&name == u.parameters.data() ? "" : ",") + quoted(name);
    out += "]]";
  }
  if (const std::string rows = row_facts_text(s.rows); !rows.empty()) out += "\n], \"rows\": [" + rows;
  const auto& o = s.optimizer;
  return out + fmt::format("\n], \"tokens\": {}, \"optimizer\": [{},{},{},{},{}]}}", s.tokens, quoted(o.row),
                           o.moments, o.bf16_weights, o.bf16_moments, o.bf16_reductions);
}

constexpr std::string_view certificate_begin = "{\n\"format\": \"rankc certificate ";

/// By which axes ranks follow from those of the program; null where it has all ranks.
std::string mesh_text(const program& p) {
  if (p.mesh.empty()) return "null";
  std::string out;
  for (const listed_axis& a : p.mesh)
    out += fmt::format("{}[{},{},{}]", &a == p.mesh.data() ? "[" : ",", quoted(a.name), a.size, a.listed);
  return out + "]";
}

/// Of the steps of one plan, as text.
std::string certificate_text(const program& of, const std::string& steps, const specification& model) {
  return fmt::format(
      "{}10\",\n\"plan\": {},\n\"plan_hash\": \"{:016x}\",\n\"trusted\": [\n\"{}\"\n],\n\"world\": "
      "{},\n"
      "\"represented\": {},\n\"model\": {},\n\"steps\": [\n{}\n]\n}}\n",
      certificate_begin, quoted(of.plan), of.plan_hash, fmt::join(trusted, "\",\n\""), world_of(of),
      mesh_text(of), model_text(model), steps);
}

}  // namespace

bool is_certificate(std::string_view beginning) { return beginning.starts_with(certificate_begin); }

std::string certificate(const std::vector<proven>& steps, const specification& model) {
  std::string text;
  for (const auto& s : steps) text += (text.empty() ? "" : ",\n") + step_text(s.program, s.verdict);
  return certificate_text(steps.at(0).program, text, model);
}

std::string certificate(const program& p, const verdict& v) {
  return certificate_text(p, step_text(p, v), {});
}

}  // namespace rankc::codegen
