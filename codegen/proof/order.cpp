// SPDX-License-Identifier: Apache-2.0
// Finds an order in which all joint events can happen if nothing is buffered, or else the ranks that wait for
// one another.
#include "passes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rankc::codegen::proof {

op_table::op_table(const codegen::program& p) : program(p) {
  for (int r = 0; r < static_cast<int>(p.ranks.size()); ++r) {
    first_of_rank.push_back(size());
    std::vector<int> on_stream(p.streams);
    for (const auto& o : p.ranks[r].ops) {
      ops.push_back(&o);
      rank.push_back(r);
      place.push_back(++on_stream[o.stream]);
    }
  }
  first_of_rank.push_back(size());
}

lists predecessors(const op_table& table) {
  lists result;
  std::vector<int> last;  // op of each stream; the begin op until the stream has one
  for (int i = 0; i < table.size(); ++i) {
    const op& o = *table.ops[i];
    const int begin = table.first_of_rank[table.rank[i]];
    if (o.kind == op_kind::begin) {
      last.assign(table.program.streams, i);
    } else {
      if (o.kind == op_kind::end) result.values.insert(result.values.end(), last.begin(), last.end());
      else result.values.push_back(last[o.stream]);
      for (int w : o.waits) result.values.push_back(begin + w);
      last[o.stream] = i;
    }
    result.close();
  }
  return result;
}

namespace {

lists successors(const lists& predecessors) {
  lists result;
  const int n = static_cast<int>(predecessors.first.size()) - 1;
  std::vector<int> filled(n + 1);
  for (int p : predecessors.values) ++filled[p + 1];
  for (int i = 0; i < n; ++i) filled[i + 1] += filled[i];
  result.first = filled;
  result.values.resize(predecessors.values.size());
  for (int i = 0; i < n; ++i)
    for (int p : predecessors[i]) result.values[filled[p]++] = i;
  return result;
}

/// A state in which the program hangs: who waits for whom.
struct hang {
  const op_table& table;
  const joint_events& events;
  const lists& predecessors;
  const std::vector<char>& happened;  // per event

  /// A predecessor that has not ended; -1: the op has started and waits for other ranks.
  int missing(int op) const {
    for (int p : predecessors[op])
      if (!happened[events.of[p]]) return p;
    return -1;
  }
  /// The op of the same rank that has started and cannot end, and for which `op` waits, directly or not.
  int stuck(int op) const {
    for (int p = missing(op); p >= 0; p = missing(op)) op = p;
    return op;
  }
  /// A member of the op's event that has not started.
  int absent(int op) const {
    const auto members = events.members[events.of[op]];
    return *std::find_if(members.begin(), members.end(), [&](int m) { return missing(m) >= 0; });
  }

  /// The ranks that wait for one another: rank 0 waits in "F0" for rank 1, which waits in "B0" for rank 0.
  std::string circle(int any_op) const {
    std::vector<int> path;
    int at = stuck(any_op);
    auto seen = path.end();
    for (; (seen = std::find(path.begin(), path.end(), at)) == path.end(); at = stuck(absent(at)))
      path.push_back(at);
    path.erase(path.begin(), seen);
    std::string text = fmt::format("rank {}", table.rank[path[0]]);
    for (std::size_t i = 0; i < path.size(); ++i)
      text += fmt::format("{} waits in \"{}\" for rank {}", i == 0 ? "" : ", which", table.ops[path[i]]->name,
                          table.rank[path[(i + 1) % path.size()]]);
    return text;
  }
};

}  // namespace

std::vector<int> sequence(const op_table& table, const joint_events& events, const lists& predecessors,
                          findings& wrong) {
  const auto after = successors(predecessors);
  std::vector<int> missing(events.size()), order;
  for (int i = 0; i < table.size(); ++i) missing[events.of[i]] += static_cast<int>(predecessors[i].size());
  order.reserve(events.size());
  for (int e = 0; e < events.size(); ++e)
    if (missing[e] == 0) order.push_back(e);
  for (std::size_t next = 0; next < order.size(); ++next)
    for (int m : events.members[order[next]])
      for (int s : after[m])
        if (--missing[events.of[s]] == 0) order.push_back(events.of[s]);
  if (static_cast<int>(order.size()) == events.size()) return order;

  std::vector<char> happened(events.size());
  for (int e : order) happened[e] = true;
  for (int e = 0; e < events.size(); ++e)
    if (!happened[e]) order.push_back(e);
  const hang state{table, events, predecessors, happened};
  for (int i = 0; i < table.size(); ++i)
    if (!happened[events.of[i]]) {
      wrong.add("RC7065: deadlock: {}", state.circle(i));
      break;
    }
  return order;
}

}  // namespace rankc::codegen::proof
