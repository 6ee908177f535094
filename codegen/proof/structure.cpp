// SPDX-License-Identifier: Apache-2.0
// The properties that the other passes rely on. If the structure of a program is broken, no other pass runs.
#include "op_site.hpp"

#include <algorithm>
#include <cstddef>

namespace rankc::codegen::proof {

namespace {

void check_communicator_table(const program& p, findings& wrong) {
  for (const auto& c : p.communicators) {
    auto ranks = c.ranks;
    std::sort(ranks.begin(), ranks.end());
    if (ranks.empty()) wrong.add("RC7000: communicator \"{}\" has no ranks", c.name);
    if (c.size != 0 && c.size < static_cast<int>(ranks.size()))
      wrong.add("RC7001: communicator \"{}\" lists {} ranks, more than its {} members", c.name, ranks.size(),
                c.size);
    else if (c.size != 0 && p.world <= static_cast<int>(p.ranks.size()))
      wrong.add(
          "RC7002: communicator \"{}\" states a size of {} in a program that has all {} ranks of the world: "
          "a size is for programs that leave ranks out",
          c.name, c.size, p.ranks.size());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] < 0 || ranks[i] >= static_cast<int>(p.ranks.size()))
        wrong.add("RC7003: communicator \"{}\" lists rank {}; the program has ranks 0..{}", c.name, ranks[i],
                  static_cast<int>(p.ranks.size()) - 1);
      if (i > 0 && ranks[i] == ranks[i - 1])
        wrong.add("RC7004: communicator \"{}\" lists rank {} twice", c.name, ranks[i]);
    }
  }
}

void check_place(const site& at) {
  const op& o = at.it();
  const int last = static_cast<int>(at.p.ranks[at.rank].ops.size()) - 1;
  if (o.kind != op_kind::begin && at.index == 0)
    at.refuse("RC7005: rank {}: op \"{}\" is the first op and must be the begin op");
  if (o.kind == op_kind::begin && at.index != 0)
    at.refuse("RC7006: rank {}: op \"{}\" is a second begin op: only the first op is one");
  if (o.kind != op_kind::end && at.index == last)
    at.refuse("RC7007: rank {}: op \"{}\" is the last op and must be the end op");
  if (o.kind == op_kind::end && at.index != last)
    at.refuse("RC7008: rank {}: op \"{}\" is an end op before the last op: only the last op is one");
  if (o.stream < 0 || o.stream >= at.p.streams)
    at.refuse("RC7009: rank {}: op \"{}\" is on stream {}; the program has streams 0..{}", o.stream,
              at.p.streams - 1);
  for (int w : o.waits)
    if (w < 0 || w >= at.index)
      at.refuse("RC7010: rank {}: op \"{}\" waits for op {}; it may wait for earlier ops only, 0..{}", w,
                at.index - 1);
}

/// `kind`: read or write.
void check_access(const site& at, const access& a, const char* kind) {
  const auto arena = at.p.ranks[at.rank].arena_bytes;
  if (a.begin >= a.end)
    at.refuse("RC7011: rank {}: op \"{}\" has an empty {}, bytes {}..{}", kind, a.begin, a.end);
  if (a.end > arena)
    at.refuse("RC7012: rank {}: op \"{}\" has a {} of bytes {}..{}, beyond the arena of {} bytes", kind,
              a.begin, a.end, arena);
  if (a.value < 0)
    at.refuse("RC7013: rank {}: op \"{}\" has a {} of bytes {}..{} that names no value", kind, a.begin,
              a.end);
}

void check_accesses_of(const site& at) {
  const op& o = at.it();
  for (const auto& a : o.reads) check_access(at, a, "read");
  for (const auto& a : o.writes) check_access(at, a, "write");
}

void check_communication(const site& at) {
  const op& o = at.it();
  if (o.kind != op_kind::send && o.kind != op_kind::receive && o.kind != op_kind::collective) return;
  if (o.communicator < 0 || o.communicator >= static_cast<int>(at.p.communicators.size()))
    return at.refuse("RC7014: rank {}: op \"{}\" uses communicator {}; the program has {} communicators",
                     o.communicator, at.p.communicators.size());
  const auto& c = at.p.communicators[o.communicator];
  const auto member = [&](int r) { return std::find(c.ranks.begin(), c.ranks.end(), r) != c.ranks.end(); };
  if (!member(at.rank))
    at.refuse("RC7015: rank {}: op \"{}\" uses communicator \"{}\", which does not list the rank", c.name);
  if (o.kind != op_kind::collective && (o.peer == at.rank || !member(o.peer)))
    at.refuse("RC7016: rank {}: op \"{}\" has peer {}, which must be another rank of communicator \"{}\"",
              o.peer, c.name);
}

}  // namespace

void check_structure(const program& p, findings& wrong) {
  if (p.ranks.empty()) wrong.add("RC7017: the program has no ranks");
  check_communicator_table(p, wrong);
  for (int r = 0; r < static_cast<int>(p.ranks.size()); ++r) {
    const auto& ops = p.ranks[r].ops;
    if (ops.size() < 2)
      wrong.add("RC7018: rank {} has {} ops; it needs a begin op and an end op", r, ops.size());
    for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
      if (wrong.full()) return;
      const site at{p, r, i, wrong};
      check_place(at);
      check_accesses_of(at);
      check_communication(at);
    }
  }
}

}  // namespace rankc::codegen::proof
