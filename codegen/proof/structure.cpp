// SPDX-License-Identifier: Apache-2.0
// What the other passes take for granted: a program whose structure is broken is not looked at any further.
// Then what can be said of each op by itself: its writes beside its reads, the bytes that it moves, the types
// of what it touches.
#include "passes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <unordered_map>

namespace rankc::codegen::proof {

namespace {

void check_communicator_table(const program& p, findings& wrong) {
  for (const auto& c : p.communicators) {
    auto ranks = c.ranks;
    std::sort(ranks.begin(), ranks.end());
    if (ranks.empty()) wrong.add(fmt::format("communicator \"{}\" has no ranks", c.name));
    if (c.size != 0 &&
        (c.size < static_cast<int>(ranks.size()) || p.world <= static_cast<int>(p.ranks.size())))
      wrong.add(fmt::format("communicator \"{}\" cannot have {} members, {} of them in the program", c.name,
                            c.size, ranks.size()));
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

/// What an op writes may lie over what it reads only where the op allows it, and then exactly.
void check_replaced(const site& at, const access& w) {
  const auto& reads = at.it().reads;
  const auto same_bytes = [&](const access& r) { return r.begin == w.begin && r.end == w.end; };
  if (w.replaces >= 0 && (w.replaces >= static_cast<int>(reads.size()) || !same_bytes(reads[w.replaces])))
    return at.refuse("writes bytes {}..{} over its read {}, which is not of these bytes", w.begin, w.end,
                     w.replaces);
  for (const access& r : reads) {
    if (r.begin >= w.end || w.begin >= r.end) continue;
    const bool allowed = w.replaces >= 0 && same_bytes(r) && r.value == reads[w.replaces].value;
    if (!allowed)
      return at.refuse("writes bytes {}..{} while it reads {}..{}, which it may not write over", w.begin,
                       w.end, r.begin, r.end);
  }
}

void check_accesses_of(const site& at) {
  const op& o = at.it();
  for (const auto& a : o.reads) check_access(at, a, "reads");
  for (const auto& a : o.writes) check_access(at, a, "writes");
}

/// Bytes that two writes of an op have in common hold one value.
void check_writes(const site& at) {
  const op& o = at.it();
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

bool are_alike(const access& r, const access& w) {
  return r.end - r.begin == w.end - w.begin && r.type == w.type;
}

/// The tensor that an all_to_all reads and the one that it writes are alike; scratch has the same size.
bool fits_all_to_all(const op& o, std::size_t members) {
  const std::size_t in = size_of(o.reads), out = size_of(o.writes);
  return in % members == 0 && o.reads.size() == 1 && o.writes.size() == 2 &&
         are_alike(o.reads[0], o.writes[0]) && out == 2 * in && o.writes[1].type == element_type::bytes;
}

/// Slots, or their offsets, lie in slabs of one size, one for each member; scratch has the size of all slabs.
bool fits_slots(const op& o, std::size_t members) {
  const bool gives_back = o.does == collective_kind::from_experts;
  const std::size_t slots = o.does == collective_kind::share_offsets ? 1 : 2;
  if (o.reads.size() != slots || o.writes.size() != 2) return false;
  const access& slabs = gives_back ? o.reads[0] : o.writes[0];
  const std::size_t size = slabs.end - slabs.begin, scratch = o.writes[1].end - o.writes[1].begin;
  return size == o.bytes && size % members == 0 && scratch == size && o.reads[0].type == o.writes[0].type &&
         o.writes[1].type == element_type::bytes &&
         o.reads.back().type == (slots == 1 ? o.reads[0].type : element_type::i32);
}

/// Each member gives as many offsets; scratch has the size of all of them.
bool fits_offsets(const op& o, std::size_t members) {
  const std::size_t in = size_of(o.reads), out = size_of(o.writes);
  return o.reads.size() == 1 && o.writes.size() == 2 && in == o.bytes && out == 2 * members * in &&
         o.writes[0].end - o.writes[0].begin == members * in && o.reads[0].type == element_type::i32 &&
         o.writes[0].type == element_type::i32 && o.writes[1].type == element_type::bytes;
}

bool fits(const op& o, std::size_t members) {
  const std::size_t in = size_of(o.reads), out = size_of(o.writes);
  const bool pairwise =
      std::equal(o.reads.begin(), o.reads.end(), o.writes.begin(), o.writes.end(), are_alike);
  switch (o.does) {
    case collective_kind::all_reduce:
    case collective_kind::all_reduce_max:
      return in == o.bytes && pairwise;
    case collective_kind::all_gather:
      return in == o.bytes && out == members * in;
    case collective_kind::reduce_scatter:
      return out == o.bytes && in == members * out;
    case collective_kind::all_to_all:
      return in == o.bytes && fits_all_to_all(o, members);
    case collective_kind::shift:
    case collective_kind::shift_back:
      return in == o.bytes && pairwise && o.reads.size() == 2 && o.writes.size() == 2;
    case collective_kind::to_experts:
    case collective_kind::from_experts:
    case collective_kind::share_offsets:
      return fits_slots(o, members);
    case collective_kind::gather_offsets:
      return fits_offsets(o, members);
  }
  return false;
}

/// A collective moves as many bytes as its kind says.
void check_sizes(const site& at) {
  const op& o = at.it();
  const std::size_t in = size_of(o.reads), out = size_of(o.writes);
  const std::size_t members = static_cast<std::size_t>(at.p.communicators[o.communicator].members());
  if (!fits(o, members))
    at.refuse("reads {} bytes and writes {}; {} of {} bytes over {} ranks does not", in, out,
              collective_kind_names[static_cast<int>(o.does)], o.bytes, members);
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
  if (o.kind != op_kind::collective && (o.peer == at.rank || !member(o.peer)))
    at.refuse("has peer {}, it must be another rank of communicator \"{}\"", o.peer, c.name);
}

/// A message moves its bytes.
void check_move(const site& at) {
  const op& o = at.it();
  if (o.kind == op_kind::collective) return check_sizes(at);
  if (o.kind != op_kind::send && o.kind != op_kind::receive) return;
  const bool sends = o.kind == op_kind::send;
  const auto moved = size_of(sends ? o.reads : o.writes);
  if (moved != o.bytes)
    at.refuse("{} {} bytes of the arena for a message of {}", sends ? "reads" : "writes", moved, o.bytes);
  if (!(sends ? o.writes : o.reads).empty())
    at.refuse("{} bytes; a {}", sends ? "writes" : "reads",
              sends ? "send only reads" : "receive only writes");
}

/// A value has one type, wherever it is written or read.
class type_table {
 public:
  void check(const site& at) {
    for (const auto* accesses : {&at.it().reads, &at.it().writes})
      for (const access& a : *accesses) {
        const auto type = type_of_.try_emplace(a.value, a.type).first->second;
        if (type != a.type)
          at.refuse("takes bytes {}..{} for {}, they hold {}", a.begin, a.end,
                    element_type_names[static_cast<int>(a.type)], element_type_names[static_cast<int>(type)]);
      }
  }

 private:
  std::unordered_map<int, element_type> type_of_;
};

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

void check_contents(const program& p, findings& wrong) {
  type_table types;
  for (int r = 0; r < static_cast<int>(p.ranks.size()); ++r)
    for (int i = 0; i < static_cast<int>(p.ranks[r].ops.size()); ++i) {
      if (wrong.full()) return;
      const site at{p, r, i, wrong};
      for (const auto& a : at.it().writes) check_replaced(at, a);
      for (const auto& a : at.it().reads)
        if (a.replaces >= 0) at.refuse("says of a read what it replaces");
      check_writes(at);
      check_move(at);
      types.check(at);
    }
}

}  // namespace rankc::codegen::proof
