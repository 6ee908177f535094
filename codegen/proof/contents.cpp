// SPDX-License-Identifier: Apache-2.0
// Checks of each op alone: its writes against its reads, the bytes that it moves, and the types of its
// accesses.
#include "op_site.hpp"

#include <rankc/codegen/sorted_accesses.hpp>

#include <algorithm>
#include <cstddef>
#include <unordered_map>

namespace rankc::codegen::proof {

namespace {

/// An op may overwrite a read only if it replaces the read: both have the same bytes.
void check_replaced(const site& at, const access& w, const sorted_accesses& by_begin) {
  const auto& reads = at.it().reads;
  if (w.replaces >= static_cast<int>(reads.size()))
    return at.refuse(
        "RC7019: rank {}: op \"{}\" writes bytes {}..{} in place of its read {}, but it has {} reads",
        w.begin, w.end, w.replaces, reads.size());
  const access* const replaced = w.replaces < 0 ? nullptr : &reads[w.replaces];
  if (replaced && (replaced->begin != w.begin || replaced->end != w.end))
    return at.refuse(
        "RC7020: rank {}: op \"{}\" writes bytes {}..{} in place of its read {}, which covers bytes {}..{}: "
        "both must cover the same bytes",
        w.begin, w.end, w.replaces, replaced->begin, replaced->end);
  const access* const met = by_begin.find_overlap(w, [&](const access& r) {
    return replaced && r.begin == w.begin && r.end == w.end && r.value == replaced->value;
  });
  if (met)
    at.refuse(
        "RC7021: rank {}: op \"{}\" writes bytes {}..{} over bytes {}..{}, which it reads and does not "
        "replace",
        w.begin, w.end, met->begin, met->end);
}

/// Overlapping writes of an op must hold one value.
void check_writes(const site& at) {
  const op& o = at.it();
  if (o.writes.size() < 2) return;
  auto writes = o.writes;
  std::sort(writes.begin(), writes.end(), [](auto& a, auto& b) { return a.begin < b.begin; });
  const access* furthest = &writes[0];
  for (std::size_t i = 1; i < writes.size(); ++i) {
    const access& a = writes[i];
    if (a.begin < furthest->end && a.value != furthest->value)
      at.refuse("RC7022: rank {}: op \"{}\" writes two values to bytes {}..{}", a.begin,
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

/// An all_to_all reads and writes tensors of the same size and type. Its scratch has the same size.
bool fits_all_to_all(const op& o, std::size_t members) {
  const std::size_t in = size_of(o.reads), out = size_of(o.writes);
  return in % members == 0 && o.reads.size() == 1 && o.writes.size() == 2 &&
         are_alike(o.reads[0], o.writes[0]) && out == 2 * in && o.writes[1].type == element_type::bytes;
}

/// Slots, or their offsets, are in slabs of one size, one for each member. The scratch has the size of all
/// slabs.
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

/// Each member contributes the same number of offsets. The scratch has the size of all of them.
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

/// A collective must move the number of bytes that its kind implies.
void check_sizes(const site& at) {
  const op& o = at.it();
  const std::size_t in = size_of(o.reads), out = size_of(o.writes);
  const std::size_t members = static_cast<std::size_t>(at.p.communicators[o.communicator].members());
  if (!fits(o, members))
    at.refuse(
        "RC7023: rank {}: op \"{}\" reads {} bytes and writes {}: sizes, types or number of its tensors do "
        "not fit {} of {} bytes over {} ranks",
        in, out, collective_kind_names[static_cast<int>(o.does)], o.bytes, members);
}

void check_send(const site& at) {
  const op& o = at.it();
  if (const auto moved = size_of(o.reads); moved != o.bytes)
    at.refuse("RC7024: rank {}: op \"{}\" reads {} bytes of the arena to send a message of {}", moved,
              o.bytes);
  if (!o.writes.empty()) at.refuse("RC7025: rank {}: op \"{}\" writes bytes; a send only reads");
}

void check_receive(const site& at) {
  const op& o = at.it();
  if (const auto moved = size_of(o.writes); moved != o.bytes)
    at.refuse("RC7026: rank {}: op \"{}\" writes {} bytes of the arena to receive a message of {}", moved,
              o.bytes);
  if (!o.reads.empty()) at.refuse("RC7027: rank {}: op \"{}\" reads bytes; a receive only writes");
}

/// A communication must move as many bytes as it states.
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
          at.refuse("RC7028: rank {}: op \"{}\" uses bytes {}..{} as {}, but their value is {}", a.begin,
                    a.end, element_type_names[static_cast<int>(a.type)],
                    element_type_names[static_cast<int>(type)]);
      }
  }

 private:
  std::unordered_map<int, element_type> type_of_;
};

}  // namespace

void check_contents(const program& p, findings& wrong) {
  type_table types;
  for (int r = 0; r < static_cast<int>(p.ranks.size()); ++r)
    for (int i = 0; i < static_cast<int>(p.ranks[r].ops.size()); ++i) {
      if (wrong.full()) return;
      const site at{p, r, i, wrong};
      const sorted_accesses by_begin(at.it().reads);
      for (const auto& a : at.it().writes) check_replaced(at, a, by_begin);
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
