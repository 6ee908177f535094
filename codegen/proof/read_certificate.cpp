// SPDX-License-Identifier: Apache-2.0
// A certificate as programs again: what each rank runs, in its own numbers.
#include <rankc/codegen/certificate.hpp>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>

#include "verify_read.hpp"

namespace rankc::codegen {

namespace {

using verifying::document;
using verifying::instruction;
using verifying::routine;
using verifying::worker;

/// A word that is there as long as the program runs: views and rows do not own their names.
std::string_view kept(const std::string& word) {
  static std::set<std::string, std::less<>> words;
  return *words.insert(word).first;
}

template <std::size_t N>
int index_of(const char* const (&names)[N], const std::string& name) {
  return static_cast<int>(std::find(std::begin(names), std::end(names), name) - std::begin(names));
}

/// Takes the ops of one rank from what it runs.
class rank_reader {
 public:
  rank_reader(const document& d, const worker& w) : d_(d), w_(w), next_first_(w.firsts.begin()) {}

  rank_program run() {
    const routine& r = d_.routines[static_cast<std::size_t>(w_.routine)];
    rank_program p{
        .ops = {}, .arena_bytes = r.arena_bytes, .number = w_.number, .sums = {}, .alike = w_.routine};
    for (const instruction& i : r.instructions) p.ops.push_back(read(i));
    for (const verifying::total& t : r.totals) {
      sum s{.kind = static_cast<sum_kind>(index_of(sum_kind_names, t.kind)),
            .name = t.name,
            .at = {t.begin, t.end},
            .over = {},
            .terms = t.terms,
            .updates = {},
            .counted = t.counted};
      for (const auto& [group, letter] : t.over)
        s.over.push_back({w_.groups.at(static_cast<std::size_t>(group)),
                          static_cast<placement>(index_of(placement_letters, std::string(1, letter)))});
      for (const auto& [begin, end] : t.updates) s.updates.push_back({begin, end});
      if (t.from != std::pair(t.begin, t.end)) s.collected = {t.from.first, t.from.second};
      p.sums.push_back(std::move(s));
    }
    return p;
  }

 private:
  op read(const instruction& i) {
    constexpr const char* kinds[]{"begin", "compute", "send", "receive", "collective", "end"};
    op o;
    o.kind = static_cast<op_kind>(index_of(kinds, i.kind));
    o.name = i.name;
    o.stream = i.stream;
    o.waits = i.waits;
    for (const auto& x : i.reads) o.reads.push_back(read(x));
    for (const auto& x : i.writes) o.writes.push_back(read(x));
    o.row = kept(i.row);
    o.rows = i.rows;
    o.seq = i.seq;
    o.number = i.number;
    o.given = i.given;
    o.operands = i.operands;
    for (const auto& v : i.views) o.views.push_back(read(v));
    for (const auto& h : i.holds) o.holds.push_back(read(h));
    if (!i.communicates) return o;
    o.communicator = w_.groups.at(static_cast<std::size_t>(i.communicator));
    if (i.point_to_point)
      o.peer =
          d_.groups.at(static_cast<std::size_t>(o.communicator)).ranks.at(static_cast<std::size_t>(i.peer));
    else {
      o.in_bf16 = i.in_bf16;
      o.by_rows = i.by_rows;
      o.does = static_cast<collective_kind>(index_of(collective_kind_names, i.does));
    }
    o.bytes = i.bytes;
    o.message = i.message;
    return o;
  }
  access read(const verifying::range& x) const {
    return {x.begin, x.end, w_.values.at(static_cast<std::size_t>(x.value)),
            static_cast<element_type>(index_of(element_type_names, x.type)), x.replaces};
  }
  view read(const verifying::port_view& x) {
    view v{.port = kept(x.port),
           .written = x.use != "in",
           .adds = x.use == "add",
           .accesses = {x.first, x.count},
           .offset = x.offset,
           .shape = {},
           .unit = x.unit,
           .stride = x.stride,
           .first = *next_first_++,
           .balances = x.balances};
    for (std::int64_t n : x.shape) v.shape.push_back(n);
    return v;
  }
  holding read(const verifying::held& x) {
    holding h{.kind = static_cast<holding_kind>(index_of(holding_names, x.kind)),
              .name = x.name,
              .box = {},
              .positions = x.positions,
              .dim = x.dim,
              .theta = x.theta,
              .scaling = x.scaling};
    for (std::int64_t n : x.counts) h.box.push_back({*next_first_++, n});
    return h;
  }

  const document& d_;
  const worker& w_;
  std::vector<std::int64_t>::const_iterator next_first_;
};

proven read(const document& d) {
  proven p;
  p.program.streams = d.streams;
  p.program.world = d.world;
  p.program.step = d.step;
  p.program.calls = {d.on_host, d.deterministic};
  for (const auto& g : d.groups)
    p.program.communicators.push_back({g.name, g.ranks, g.size, g.one_layout, g.along});
  for (const auto& a : d.mesh) p.program.mesh.push_back({a.name, a.size, a.listed});
  for (const worker& w : d.workers) {
    p.program.ranks.push_back(rank_reader(d, w).run());
    auto& positions = p.verdict.position.emplace_back();
    for (const instruction& i : d.routines[static_cast<std::size_t>(w.routine)].instructions)
      positions.push_back(i.position);
  }
  p.verdict.ok = true;
  return p;
}

}  // namespace

certified read_certificate(const std::string& json_text) {
  verifying::file f = verifying::read(json_text);
  certified c{{}, std::move(f.model), std::move(f.trusted)};
  const std::uint64_t hash = std::stoull(f.plan_hash, nullptr, 16);
  for (const document& d : f.steps) {
    program& p = c.steps.emplace_back(read(d)).program;
    p.plan = f.plan;
    p.plan_hash = hash;
  }
  return c;
}

}  // namespace rankc::codegen
