// SPDX-License-Identifier: Apache-2.0
// Pairs each send with its receive, and the calls of a collective with each other. There are no tags: on a
// communicator the n-th send from a to b belongs to the n-th receive of b from a, and the n-th collectives of
// all members belong together. The ops of a pair or group must state the same message.
#include "passes.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace rankc::codegen::proof {

namespace {

/// The bytes of the first of a shift's two tensors; 0 for all other ops.
std::size_t first_bytes(const op& o) {
  return is_shift(o.does) && !o.reads.empty() ? o.reads[0].end - o.reads[0].begin : 0;
}

bool same_message(const op& a, const op& b) {
  return a.message == b.message && a.bytes == b.bytes && first_bytes(a) == first_bytes(b) &&
         a.name == b.name && a.does == b.does && a.in_bf16 == b.in_bf16 && a.by_rows == b.by_rows;
}

bool same_values(const std::vector<access>& sent, const std::vector<access>& received) {
  return std::equal(sent.begin(), sent.end(), received.begin(), received.end(), [](auto& a, auto& b) {
    return a.value == b.value && a.end - a.begin == b.end - b.begin;
  });
}

void add_other_message(const op_table& table, int a, int b, const std::string& communicator,
                       findings& wrong) {
  const op &x = *table.ops[a], &y = *table.ops[b];
  wrong.add(
      "RC7060: rank {}: op \"{}\" (message {}, {} bytes) is paired with op \"{}\" (message {}, {} bytes) of "
      "rank {} on communicator \"{}\": name, message, kind and the bytes of each tensor must be equal",
      table.rank[a], x.name, x.message, x.bytes, y.name, y.message, y.bytes, table.rank[b], communicator);
}

struct channel {
  std::vector<int> sends, receives;
};

using channels = std::map<std::tuple<int, int, int>, channel>;  // by communicator, sender, receiver

void match_channels(const op_table& table, const channels& all, std::vector<int>& leader, findings& wrong) {
  for (const auto& [key, c] : all) {
    const auto& [communicator, from, to] = key;
    const auto& name = table.program.communicators[communicator].name;
    const auto both = std::min(c.sends.size(), c.receives.size());
    for (std::size_t n = 0; n < both && !wrong.full(); ++n) {
      const int s = c.sends[n], r = c.receives[n];
      leader[r] = s;
      if (!same_message(*table.ops[s], *table.ops[r])) add_other_message(table, s, r, name, wrong);
      else if (!same_values(table.ops[s]->reads, table.ops[r]->writes))
        wrong.add(
            "RC7061: rank {}: op \"{}\" sends values that differ from those that op \"{}\" of rank {} "
            "receives",
            from, table.ops[s]->name, table.ops[r]->name, to);
    }
    if (c.sends.size() == c.receives.size()) continue;
    const int lone = c.sends.size() > both ? c.sends[both] : c.receives[both];
    wrong.add(
        "RC7062: rank {} sends {} messages to rank {}, which receives {}, on communicator \"{}\": op \"{}\" "
        "of rank {} has no partner",
        from, c.sends.size(), to, c.receives.size(), name, table.ops[lone]->name, table.rank[lone]);
  }
}

void match_collectives(const op_table& table, const std::vector<std::vector<std::vector<int>>>& all,
                       std::vector<int>& leader, findings& wrong) {
  for (std::size_t c = 0; c < all.size(); ++c) {
    const auto& communicator = table.program.communicators[c];
    const auto& first = all[c][communicator.ranks[0]];
    for (int r : communicator.ranks) {
      const auto& mine = all[c][r];
      const auto both = std::min(first.size(), mine.size());
      for (std::size_t n = 0; n < both && !wrong.full(); ++n) {
        leader[mine[n]] = first[n];
        if (!same_message(*table.ops[first[n]], *table.ops[mine[n]]))
          add_other_message(table, first[n], mine[n], communicator.name, wrong);
      }
      if (first.size() == mine.size()) continue;
      const int lone = first.size() > both ? first[both] : mine[both];
      wrong.add(
          "RC7064: rank {} enters {} collectives on communicator \"{}\", rank {} enters {}: op \"{}\" of "
          "rank {} has no partner",
          communicator.ranks[0], first.size(), communicator.name, r, mine.size(), table.ops[lone]->name,
          table.rank[lone]);
    }
  }
}

joint_events gather(const std::vector<int>& leader) {
  joint_events events;
  const int n = static_cast<int>(leader.size());
  std::vector<int> number(n), filled;
  std::vector<int> count;
  for (int i = 0; i < n; ++i)
    if (leader[i] == i) {
      number[i] = static_cast<int>(count.size());
      count.push_back(0);
    }
  events.of.resize(n);
  for (int i = 0; i < n; ++i) ++count[events.of[i] = number[leader[i]]];
  for (int c : count) events.members.first.push_back(events.members.first.back() + c);
  events.members.values.resize(n);
  filled.assign(events.members.first.begin(), events.members.first.end() - 1);
  for (int i = 0; i < n; ++i) events.members.values[filled[events.of[i]]++] = i;
  return events;
}

}  // namespace

joint_events match(const op_table& table, findings& wrong) {
  const auto& p = table.program;
  channels point_to_point;
  std::vector<std::vector<std::vector<int>>> collectives(p.communicators.size(),
                                                         std::vector<std::vector<int>>(p.ranks.size()));
  std::vector<int> leader(table.size());
  for (int i = 0; i < table.size(); ++i) {
    const op& o = *table.ops[i];
    const int r = table.rank[i];
    leader[i] = i;
    if (o.kind == op_kind::send) point_to_point[{o.communicator, r, o.peer}].sends.push_back(i);
    if (o.kind == op_kind::receive) point_to_point[{o.communicator, o.peer, r}].receives.push_back(i);
    if (o.kind == op_kind::collective) collectives[o.communicator][r].push_back(i);
  }
  match_channels(table, point_to_point, leader, wrong);
  match_collectives(table, collectives, leader, wrong);
  return gather(leader);
}

}  // namespace rankc::codegen::proof
