// SPDX-License-Identifier: Apache-2.0
// Checks the operands of communication. On all members they are at the same bytes, if the arenas have one
// layout. Otherwise, the tensors that a collective finds behind one pointer have the same order.
#include "schedule.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace rankc::codegen::verifying {

namespace {

void check_offset(const step& d, id a, std::uint64_t here, id b, std::uint64_t there) {
  if (here != there)
    refuse(d, a,
           "RC7253: certificate, rank {}: op \"{}\" has an operand at byte {} and at byte {} on rank {}: "
           "both must be equal, because the members' arenas have one layout",
           here, there, b.rank);
}

/// Checks a send and its receive, on a communicator whose members have one layout.
void check_message(const step& d, id a, id b) {
  const listed_op &x = at(d, a), &y = at(d, b);
  const auto &from = x.kind == op_kind::send ? x.reads : x.writes,
             &to = y.kind == op_kind::send ? y.reads : y.writes;
  for (std::size_t i = 0; i < std::min(from.size(), to.size()); ++i)
    check_offset(d, a, from[i].begin, b, to[i].begin);
}

/// Checks two members of a collective.
void check_pair(const step& d, id a, id b, bool one_layout) {
  static const std::set<collective_kind> behind_one_pointer{
      collective_kind::all_reduce, collective_kind::all_reduce_max, collective_kind::all_gather,
      collective_kind::reduce_scatter};
  const listed_op &x = at(d, a), &y = at(d, b);
  if (x.reads.size() != y.reads.size() || x.writes.size() != y.writes.size())
    refuse(
        d, a,
        "RC7252: certificate, rank {}: op \"{}\" reads {} tensors and writes {}, and {} and {} on rank {}: "
        "both must be equal",
        x.reads.size(), x.writes.size(), y.reads.size(), y.writes.size(), b.rank);
  for (const auto of : {&listed_op::reads, &listed_op::writes})
    for (std::size_t i = 0; i < (x.*of).size(); ++i) {
      const std::uint64_t here = (x.*of)[i].begin, there = (y.*of)[i].begin;
      if (one_layout) check_offset(d, a, here, b, there);
      const auto behind_first = static_cast<std::int64_t>(here - (x.*of)[0].begin),
                 there_behind_first = static_cast<std::int64_t>(there - (y.*of)[0].begin);
      if (behind_one_pointer.count(x.does) && behind_first != there_behind_first)
        refuse(d, a,
               "RC7251: certificate, rank {}: op \"{}\" has tensor {} {} bytes after its first, and {} on "
               "rank {}: all members must place the tensors of one call in the same order",
               i, behind_first, there_behind_first, b.rank);
    }
}

/// The tensors that a rank begins with, and their bytes.
using beginning = std::vector<std::tuple<std::uint64_t, std::uint64_t, holding_kind, std::string>>;
beginning beginning_of(const step& d, int rank) {
  const listed_op& s = program_of(d, rank).ops.front();
  beginning all;
  for (std::size_t i = 0; i < std::min(s.writes.size(), s.holds.size()); ++i)
    all.emplace_back(s.writes[i].begin, s.writes[i].end, s.holds[i].kind, s.holds[i].name);
  return all;
}

bool same_names(const step& d, int a, int b) {
  const auto &x = program_of(d, a).ops, &y = program_of(d, b).ops;
  return x.size() > 2 && std::equal(x.begin(), x.end(), y.begin(), y.end(),
                                    [](const listed_op& s, const listed_op& t) { return s.name == t.name; });
}

/// Checks that members of one pipeline rank are listed with one layout, because the runtime assumes so. Such
/// members begin with the same tensors at the same bytes, and run ops of the same names.
void check_layout(const step& d, const communicator& g) {
  if (g.one_layout || g.size < 2) return;
  const beginning first = beginning_of(d, g.ranks[0]);
  bool alike = !first.empty();
  for (int r : g.ranks)
    alike = alike && program_of(d, r).arena_bytes == program_of(d, g.ranks[0]).arena_bytes &&
            beginning_of(d, r) == first && same_names(d, r, g.ranks[0]);
  if (alike)
    refuse(
        "RC7262: certificate: communicator \"{}\" is marked as having arenas with different layouts, but its "
        "members begin with the same tensors at the same bytes and run the same ops",
        g.name);
}

}  // namespace

void check_operands(const step& d, const schedule& s) {
  for (const communicator& g : d.communicators) check_layout(d, g);
  for (int r = 0; r < static_cast<int>(d.ranks.size()); ++r) {
    const auto& ops = program_of(d, r).ops;
    for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
      const id me{r, i};
      if (!communicates(ops[i]) || s.together(me)[0] != me) continue;
      const bool one_layout = d.communicators[d.ranks[r].communicators[ops[i].communicator]].one_layout;
      for (const id& other : s.together(me)) {
        if (ops[i].kind == op_kind::collective) check_pair(d, me, other, one_layout);
        else if (one_layout) check_message(d, me, other);
      }
    }
  }
}

}  // namespace rankc::codegen::verifying
