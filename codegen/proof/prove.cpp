// SPDX-License-Identifier: Apache-2.0
// The passes of the proof in order. Each pass relies on what the passes before it have shown.
#include <rankc/codegen/prove.hpp>

#include "passes.hpp"

#include <algorithm>

namespace rankc::codegen {

namespace {

/// The position of each op: one after the latest op that its event waits for. Ranks that run the same ops get
/// equal positions.
std::vector<std::vector<int>> positions(const proof::op_table& table, const proof::joint_events& events,
                                        const proof::lists& predecessors, const std::vector<int>& sequence) {
  std::vector<int> place(events.size());
  for (int event : sequence)
    for (int op : events.members[event])
      for (int p : predecessors[op]) place[event] = std::max(place[event], place[events.of[p]] + 1);
  std::vector<std::vector<int>> result(table.program.ranks.size());
  for (int i = 0; i < table.size(); ++i) result[table.rank[i]].push_back(place[events.of[i]]);
  return result;
}

/// Usually the rank's own streams and waits give all the order that the accesses need. If they do not, order
/// through other ranks may.
void check_rank(const proof::op_table& table, proof::clocks& clock, int rank, proof::findings& wrong) {
  proof::findings alone;
  clock.turn_to_alone(rank);
  proof::check_communicators(table, clock, rank, alone);
  proof::check_accesses(table, clock, rank, alone);
  if (alone.none()) return;
  clock.turn_to(rank);
  proof::check_communicators(table, clock, rank, wrong);
  proof::check_accesses(table, clock, rank, wrong);
}

void run_passes(const program& p, std::vector<std::vector<int>>& position, proof::findings& wrong) {
  proof::check_structure(p, wrong);
  if (!wrong.none()) return;
  proof::check_contents(p, wrong);
  proof::check_by_rows(p, wrong);
  const proof::op_table table(p);
  const auto events = proof::match(table, wrong);
  proof::check_operands(table, events, wrong);
  const auto predecessors = proof::predecessors(table);
  const auto sequence = proof::sequence(table, events, predecessors, wrong);
  position = positions(table, events, predecessors, sequence);
  if (!wrong.none()) return;
  proof::clocks clock(table, events, predecessors, sequence);
  for (int r = 0; r < static_cast<int>(p.ranks.size()) && !wrong.full(); ++r)
    check_rank(table, clock, r, wrong);
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
