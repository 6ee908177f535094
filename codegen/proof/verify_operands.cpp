// SPDX-License-Identifier: Apache-2.0
// Operands of a collective lie alike on all members: at the same bytes where the arenas have one layout;
// elsewhere the tensors that a call finds behind one pointer lie in the same order.
#include "verify_schedule.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace rankc::codegen::verifying {

namespace {

void check_pair(const document& d, id a, id b, bool one_layout) {
  static const std::set<std::string> behind_one_pointer{"all_reduce", "all_reduce_max", "all_gather",
                                                        "reduce_scatter"};
  const instruction &x = at(d, a), &y = at(d, b);
  if (x.reads.size() != y.reads.size() || x.writes.size() != y.writes.size())
    refuse(
        d, a,
        "RC7252: certificate, rank {}: op \"{}\" reads {} tensors and writes {}, and {} and {} on rank {}: "
        "both must be equal",
        x.reads.size(), x.writes.size(), y.reads.size(), y.writes.size(), b.rank);
  for (const auto of : {&instruction::reads, &instruction::writes})
    for (std::size_t i = 0; i < (x.*of).size(); ++i) {
      const std::uint64_t here = (x.*of)[i].begin, there = (y.*of)[i].begin;
      if (one_layout && here != there)
        refuse(d, a,
               "RC7253: certificate, rank {}: op \"{}\" has an operand at byte {} and at byte {} on rank {}: "
               "both must be equal, because the members' arenas have one layout",
               here, there, b.rank);
      const auto behind_first = static_cast<std::int64_t>(here - (x.*of)[0].begin),
                 there_behind_first = static_cast<std::int64_t>(there - (y.*of)[0].begin);
      if (behind_one_pointer.count(x.does) && behind_first != there_behind_first)
        refuse(
            d, a,
            "RC7251: certificate, rank {}: op \"{}\" has tensor {} {} bytes behind its first, and {} on rank "
            "{}: the tensors of one call must lie in one order",
            i, behind_first, there_behind_first, b.rank);
    }
}

/// The tensors that a rank begins with, and their bytes.
using beginning = std::vector<std::tuple<std::uint64_t, std::uint64_t, std::string, std::string>>;
beginning beginning_of(const document& d, int rank) {
  const instruction& s = routine_of(d, rank).instructions.front();
  beginning all;
  for (std::size_t i = 0; i < std::min(s.writes.size(), s.holds.size()); ++i)
    all.emplace_back(s.writes[i].begin, s.writes[i].end, s.holds[i].kind, s.holds[i].name);
  return all;
}

bool same_names(const document& d, int a, int b) {
  const auto &x = routine_of(d, a).instructions, &y = routine_of(d, b).instructions;
  return x.size() > 2 &&
         std::equal(x.begin(), x.end(), y.begin(), y.end(),
                    [](const instruction& s, const instruction& t) { return s.name == t.name; });
}

/// Members that begin with the same tensors at the same bytes, and run ops of the same names, are of one
/// pipeline rank, and the runtime takes their arenas to have one layout.
void check_layout(const document& d, const group& g) {
  if (g.one_layout || g.size < 2) return;
  const beginning first = beginning_of(d, g.ranks[0]);
  bool alike = !first.empty();
  for (int r : g.ranks)
    alike = alike && routine_of(d, r).arena_bytes == routine_of(d, g.ranks[0]).arena_bytes &&
            beginning_of(d, r) == first && same_names(d, r, g.ranks[0]);
  if (alike)
    refuse(
        "RC7262: certificate: communicator \"{}\" is of arenas with layouts of their own, but its members "
        "begin with the same tensors at the same bytes and run the same ops",
        g.name);
}

}  // namespace

void check_operands(const document& d, const schedule& s) {
  for (const group& g : d.groups) check_layout(d, g);
  for (int r = 0; r < static_cast<int>(d.workers.size()); ++r) {
    const auto& instructions = routine_of(d, r).instructions;
    for (int i = 0; i < static_cast<int>(instructions.size()); ++i) {
      const id me{r, i};
      if (instructions[i].kind != "collective" || s.together(me)[0] != me) continue;
      const bool one_layout = d.groups[d.workers[r].groups[instructions[i].communicator]].one_layout;
      for (const id& other : s.together(me)) check_pair(d, me, other, one_layout);
    }
  }
}

}  // namespace rankc::codegen::verifying
