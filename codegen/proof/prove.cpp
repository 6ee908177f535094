// SPDX-License-Identifier: Apache-2.0
// The passes of the proof in order. Each takes for granted what the ones before it have shown.
#include <rankc/codegen/prove.hpp>

#include "passes.hpp"

namespace rankc::codegen {

namespace {

std::vector<std::vector<int>> positions(const proof::op_table& table, const proof::joint_events& events,
                                        const std::vector<int>& sequence) {
  std::vector<int> place(events.size());
  for (int i = 0; i < events.size(); ++i) place[sequence[i]] = i;
  std::vector<std::vector<int>> result(table.program.ranks.size());
  for (int i = 0; i < table.size(); ++i) result[table.rank[i]].push_back(place[events.of[i]]);
  return result;
}

void run_passes(const program& p, std::vector<std::vector<int>>& position, proof::findings& wrong) {
  proof::check_structure(p, wrong);
  if (!wrong.none()) return;
  const proof::op_table table(p);
  const auto events = proof::match(table, wrong);
  if (!wrong.none()) return;
  const auto predecessors = proof::predecessors(table);
  const auto sequence = proof::sequence(table, events, predecessors, wrong);
  position = positions(table, events, sequence);
  if (!wrong.none()) return;
  proof::clocks clock(table, events, predecessors, sequence);
  for (int r = 0; r < static_cast<int>(p.ranks.size()) && !wrong.full(); ++r) {
    clock.turn_to(r);
    proof::check_communicators(table, clock, r, wrong);
    proof::check_accesses(table, clock, r, wrong);
  }
}

}  // namespace

verdict prove(const program& p) {
  verdict result;
  proof::findings wrong;
  run_passes(p, result.position, wrong);
  result.ok = wrong.none();
  result.reasons = wrong.take();
  return result;
}

}  // namespace rankc::codegen
