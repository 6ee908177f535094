// SPDX-License-Identifier: Apache-2.0
// What the other passes take for granted. A program that fails here is not looked at any further.
#include "passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace rankc::codegen::proof {

namespace {

void check_communicator_table(const program& p, findings& wrong) {
  for (const auto& c : p.communicators) {
    auto ranks = c.ranks;
    std::sort(ranks.begin(), ranks.end());
    if (ranks.empty()) wrong.add(fmt::format("communicator \"{}\" has no ranks", c.name));
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] < 0 || ranks[i] >= static_cast<int>(p.ranks.size()))
        wrong.add(fmt::format("communicator \"{}\" names rank {}, the program has ranks 0..{}", c.name,
                              ranks[i], static_cast<int>(p.ranks.size()) - 1));
      if (i > 0 && ranks[i] == ranks[i - 1])
        wrong.add(fmt::format("communicator \"{}\" names rank {} twice", c.name, ranks[i]));
    }
  }
}

struct site {
  const program& p;
  int rank, index;
  findings& wrong;

  const op& it() const { return p.ranks[rank].ops[index]; }
  template <class... T>
  void refuse(fmt::format_string<T...> text, T&&... facts) const {
    wrong.add(fmt::format("rank {}: \"{}\" ", rank, it().name) +
              fmt::format(text, std::forward<T>(facts)...));
  }
};

void check_place(const site& at) {
  const op& o = at.it();
  const int last = static_cast<int>(at.p.ranks[at.rank].ops.size()) - 1;
  if ((o.kind == op_kind::begin) != (at.index == 0))
    at.refuse("{}", at.index == 0 ? "is the first op and must be the begin op" : "begins the rank again");
  if ((o.kind == op_kind::end) != (at.index == last))
    at.refuse("{}", at.index == last ? "is the last op and must be the end op" : "ends the rank too early");
  if (o.stream < 0 || o.stream >= at.p.streams)
    at.refuse("is on stream {}, the program has streams 0..{}", o.stream, at.p.streams - 1);
  for (int w : o.waits)
    if (w < 0 || w >= at.index)
      at.refuse("waits for op {}, it may wait for earlier ops only: 0..{}", w, at.index - 1);
}

void check_access(const site& at, const access& a, const char* verb) {
  const auto arena = at.p.ranks[at.rank].arena_bytes;
  if (a.begin >= a.end) at.refuse("{} no bytes: {}..{}", verb, a.begin, a.end);
  if (a.end > arena) at.refuse("{} bytes {}..{}, the arena ends at {}", verb, a.begin, a.end, arena);
  if (a.value < 0) at.refuse("{} bytes {}..{} without naming a value", verb, a.begin, a.end);
}

void check_accesses_of(const site& at) {
  const op& o = at.it();
  for (const auto& a : o.reads) check_access(at, a, "reads");
  for (const auto& a : o.writes) check_access(at, a, "writes");
  if (o.writes.size() < 2) return;
  auto writes = o.writes;
  std::sort(writes.begin(), writes.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  const access* furthest = &writes[0];
  for (std::size_t i = 1; i < writes.size(); ++i) {
    const access& a = writes[i];
    if (a.begin < furthest->end && a.value != furthest->value)
      at.refuse("writes two values to bytes {}..{}", a.begin, std::min(a.end, furthest->end));
    if (a.end > furthest->end) furthest = &a;
  }
}

std::size_t size_of(const std::vector<access>& accesses) {
  std::size_t sum = 0;
  for (const auto& a : accesses) sum += a.end - a.begin;
  return sum;
}

void check_communication(const site& at) {
  const op& o = at.it();
  if (o.kind != op_kind::send && o.kind != op_kind::receive && o.kind != op_kind::collective) return;
  if (o.communicator < 0 || o.communicator >= static_cast<int>(at.p.communicators.size()))
    return at.refuse("uses communicator {}, the program has {} of them", o.communicator,
                     at.p.communicators.size());
  const auto& c = at.p.communicators[o.communicator];
  const auto member = [&](int r) { return std::find(c.ranks.begin(), c.ranks.end(), r) != c.ranks.end(); };
  if (!member(at.rank)) at.refuse("uses communicator \"{}\", which rank {} is not in", c.name, at.rank);
  if (o.kind == op_kind::collective) return;
  const bool sends = o.kind == op_kind::send;
  if (o.peer == at.rank || !member(o.peer))
    at.refuse("has peer {}, it must be another rank of communicator \"{}\"", o.peer, c.name);
  const auto moved = size_of(sends ? o.reads : o.writes);
  if (moved != o.bytes)
    at.refuse("{} {} bytes of the arena for a message of {}", sends ? "reads" : "writes", moved, o.bytes);
  if (!(sends ? o.writes : o.reads).empty())
    at.refuse("{} bytes; a {}", sends ? "writes" : "reads",
              sends ? "send only reads" : "receive only writes");
}

}  // namespace

void check_structure(const program& p, findings& wrong) {
  if (p.ranks.empty()) wrong.add("the program has no ranks");
  check_communicator_table(p, wrong);
  for (int r = 0; r < static_cast<int>(p.ranks.size()); ++r) {
    const auto& ops = p.ranks[r].ops;
    if (ops.size() < 2) wrong.add(fmt::format("rank {} has no begin op and end op", r));
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
