// SPDX-License-Identifier: Apache-2.0
// What the other passes take for granted: a program whose structure is broken is not looked at any further.
// Then what can be said of each op by itself: its writes beside its reads, the bytes that it moves, the types
// of what it touches.
#include "passes.hpp"

#include <algorithm>
#include <cstddef>
#include <unordered_map>

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

struct site {
  const program& p;
  int rank, index;
  findings& wrong;

  const op& it() const { return p.ranks[rank].ops[index]; }
  template <class... T>
  void refuse(runtime::sentence<int, std::string, std::type_identity_t<T>...> about,
              const T&... facts) const {
    wrong.add(about, rank, it().name, facts...);
  }
};

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

/// What an op writes may lie over what it reads only where the op allows it, and then exactly.
void check_replaced(const site& at, const access& w) {
  const auto& reads = at.it().reads;
  const auto same_bytes = [&](const access& r) { return r.begin == w.begin && r.end == w.end; };
  if (w.replaces >= static_cast<int>(reads.size()))
    return at.refuse(
        "RC7014: rank {}: op \"{}\" writes bytes {}..{} in place of its read {}, but it has {} reads",
        w.begin, w.end, w.replaces, reads.size());
  if (w.replaces >= 0 && !same_bytes(reads[w.replaces]))
    return at.refuse(
        "RC7015: rank {}: op \"{}\" writes bytes {}..{} in place of its read {}, which covers bytes {}..{}: "
        "both must cover the same bytes",
        w.begin, w.end, w.replaces, reads[w.replaces].begin, reads[w.replaces].end);
  for (const access& r : reads) {
    if (r.begin >= w.end || w.begin >= r.end) continue;
    const bool allowed = w.replaces >= 0 && same_bytes(r) && r.value == reads[w.replaces].value;
    if (!allowed)
      return at.refuse(
          "RC7016: rank {}: op \"{}\" writes bytes {}..{} over bytes {}..{}, which it reads and does not "
          "replace",
          w.begin, w.end, r.begin, r.end);
  }
}

void check_accesses_of(const site& at) {
  const op& o = at.it();
  for (const auto& a : o.reads) check_access(at, a, "read");
  for (const auto& a : o.writes) check_access(at, a, "write");
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
      at.refuse("RC7017: rank {}: op \"{}\" writes two values to bytes {}..{}", a.begin,
                std::min(a.end, furthest->end));
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
    at.refuse(
        "RC7018: rank {}: op \"{}\" reads {} bytes and writes {}: sizes, types or number of its tensors do "
        "not fit {} of {} bytes over {} ranks",
        in, out, collective_kind_names[static_cast<int>(o.does)], o.bytes, members);
}

void check_communication(const site& at) {
  const op& o = at.it();
  if (o.kind != op_kind::send && o.kind != op_kind::receive && o.kind != op_kind::collective) return;
  if (o.communicator < 0 || o.communicator >= static_cast<int>(at.p.communicators.size()))
    return at.refuse("RC7019: rank {}: op \"{}\" uses communicator {}; the program has {} communicators",
                     o.communicator, at.p.communicators.size());
  const auto& c = at.p.communicators[o.communicator];
  const auto member = [&](int r) { return std::find(c.ranks.begin(), c.ranks.end(), r) != c.ranks.end(); };
  if (!member(at.rank))
    at.refuse("RC7020: rank {}: op \"{}\" uses communicator \"{}\", which does not list the rank", c.name);
  if (o.kind != op_kind::collective && (o.peer == at.rank || !member(o.peer)))
    at.refuse("RC7021: rank {}: op \"{}\" has peer {}, which must be another rank of communicator \"{}\"",
              o.peer, c.name);
}

void check_send(const site& at) {
  const op& o = at.it();
  if (const auto moved = size_of(o.reads); moved != o.bytes)
    at.refuse("RC7022: rank {}: op \"{}\" reads {} bytes of the arena to send a message of {}", moved,
              o.bytes);
  if (!o.writes.empty()) at.refuse("RC7023: rank {}: op \"{}\" writes bytes; a send only reads");
}

void check_receive(const site& at) {
  const op& o = at.it();
  if (const auto moved = size_of(o.writes); moved != o.bytes)
    at.refuse("RC7024: rank {}: op \"{}\" writes {} bytes of the arena to receive a message of {}", moved,
              o.bytes);
  if (!o.reads.empty()) at.refuse("RC7025: rank {}: op \"{}\" reads bytes; a receive only writes");
}

/// A message moves its bytes.
void check_move(const site& at) {
  switch (at.it().kind) {
    case op_kind::send:
      return check_send(at);
    case op_kind::receive:
      return check_receive(at);
    case op_kind::collective:
      return check_sizes(at);
    default:
      return;
  }
}

/// A value has one type, wherever it is written or read.
class type_table {
 public:
  void check(const site& at) {
    for (const auto* accesses : {&at.it().reads, &at.it().writes})
      for (const access& a : *accesses) {
        const auto type = type_of_.try_emplace(a.value, a.type).first->second;
        if (type != a.type)
          at.refuse("RC7026: rank {}: op \"{}\" uses bytes {}..{} as {}, but their value is {}", a.begin,
                    a.end, element_type_names[static_cast<int>(a.type)],
                    element_type_names[static_cast<int>(type)]);
      }
  }

 private:
  std::unordered_map<int, element_type> type_of_;
};

}  // namespace

void check_structure(const program& p, findings& wrong) {
  if (p.ranks.empty()) wrong.add("RC7027: the program has no ranks");
  check_communicator_table(p, wrong);
  for (int r = 0; r < static_cast<int>(p.ranks.size()); ++r) {
    const auto& ops = p.ranks[r].ops;
    if (ops.size() < 2)
      wrong.add("RC7028: rank {} has {} ops; it needs a begin op and an end op", r, ops.size());
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
        if (a.replaces >= 0)
          at.refuse(
              "RC7029: rank {}: op \"{}\" reads bytes {}..{} to replace a read: only a write replaces one",
              a.begin, a.end);
      check_writes(at);
      check_move(at);
      types.check(at);
    }
}

}  // namespace rankc::codegen::proof
