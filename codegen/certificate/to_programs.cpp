// SPDX-License-Identifier: Apache-2.0
// A certificate's steps as programs of all ranks, for the comparison with the model.
#include "document.hpp"

namespace rankc::codegen {

namespace {

/// The ops of a rank, in the numbers of the step.
std::vector<op> ops_of(const schema::step& s, const schema::listed_rank& r) {
  std::vector<op> ops;
  auto first = r.firsts.begin();
  for (const schema::listed_op& listed : s.programs[static_cast<std::size_t>(r.program)].ops) {
    op& o = ops.emplace_back(listed);
    for (access& a : o.reads) a.value = r.values.at(static_cast<std::size_t>(a.value));
    for (access& a : o.writes) a.value = r.values.at(static_cast<std::size_t>(a.value));
    for (view& v : o.views) v.first = *first++;
    for (holding& h : o.holds)
      for (box_range& b : h.box) b.first = *first++;
    if (o.communicator < 0) continue;
    o.communicator = r.communicators.at(static_cast<std::size_t>(o.communicator));
    if (o.peer >= 0)
      o.peer = s.communicators.at(static_cast<std::size_t>(o.communicator))
                   .ranks.at(static_cast<std::size_t>(o.peer));
  }
  return ops;
}

proven program_of(const schema::step& s, const schema::file& f) {
  proven p;
  p.program = {.plan = f.plan,
               .plan_hash = std::stoull(f.plan_hash, nullptr, 16),
               .streams = s.streams,
               .communicators = s.communicators,
               .ranks = {},
               .world = s.world,
               .step = s.name,
               .calls = s.calls,
               .mesh = s.mesh};
  for (const schema::listed_rank& r : s.ranks) {
    const schema::listed_program& of = s.programs[static_cast<std::size_t>(r.program)];
    p.program.ranks.push_back({ops_of(s, r), of.arena_bytes, r.number, r.program});
    std::vector<int>& positions = p.verdict.position.emplace_back();
    for (const schema::listed_op& o : of.ops) positions.push_back(o.position);
  }
  p.verdict.ok = true;
  return p;
}

}  // namespace

certified schema::to_programs(file f) {
  certified c{{}, std::move(f.model), std::move(f.trusted)};
  for (const schema::step& s : f.steps) c.steps.push_back(program_of(s, f));
  return c;
}

certified read_certificate(const std::string& json_text) {
  return schema::to_programs(schema::read(json_text));
}

}  // namespace rankc::codegen
