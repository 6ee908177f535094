// SPDX-License-Identifier: Apache-2.0
#include "places.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "claims.hpp"
#include "refusal.hpp"
#include "tails.hpp"

namespace rankc::codegen::algebra {

namespace {

std::size_t values_of(const program& p) {
  int most = -1;
  for (const rank_program& r : p.ranks)
    for (const op& o : r.ops)
      for (const auto* accesses : {&o.reads, &o.writes})
        for (const access& a : *accesses) most = std::max(most, a.value);
  return static_cast<std::size_t>(most + 1);
}

/// The first byte of each value, for one rank after another.
class places {
 public:
  explicit places(std::size_t values) : of_(values) {}

  void add(int rank, const rank_program& p) {
    for (const op& o : p.ops)
      for (const access& w : o.writes) {
        place& known = of_[static_cast<std::size_t>(w.value)];
        if (known.rank == rank)
          throw refusal(
              "RC7270: rank {}: \"{}\" writes value {} to byte {}, and another write puts it at byte {}; "
              "expected one write of a value",
              rank, o.name, w.value, w.begin, known.begin);
        known = {rank, w.begin};
      }
    for (const op& o : p.ops)
      for (const access& r : o.reads) {
        const place& known = of_[static_cast<std::size_t>(r.value)];
        if (known.rank == rank && known.begin != r.begin)
          throw refusal(
              "RC7271: rank {}: \"{}\" reads value {} from byte {} on; it was written from byte {} on", rank,
              o.name, r.value, r.begin, known.begin);
      }
  }

 private:
  struct place {
    int rank = -1;
    std::size_t begin = 0;
  };
  std::vector<place> of_;  // by value, on the last rank that writes it
};

/// Checks that tails end within the arena, and that their step writes nothing but padding there, which a
/// reduction may sum in place.
void check_tails(int rank, const rank_program& p) {
  const byte_ranges tails = tails_of(p);
  if (!tails.empty() && tails.rbegin()->second > p.arena_bytes)
    throw refusal("RC7757: rank {}: a kernel of the optimizer or the norm reaches byte {}; the arena has {}",
                  rank, tails.rbegin()->second, p.arena_bytes);
  for (const op& o : p.ops)
    for (std::size_t w = 0; w < o.writes.size(); ++w) {
      const bool is_reduced = o.kind == op_kind::collective && o.writes[w].replaces >= 0;
      if (!is_padding(o, w) && !is_reduced && meets(tails, o.writes[w]))
        throw refusal(
            "RC7277: rank {}: \"{}\" writes bytes {} to {}; expected padding there, which the optimizer's "
            "kernel takes with the tensor before it",
            rank, o.name, o.writes[w].begin, o.writes[w].end);
    }
}

/// Checks that all working copies have one base address, because the optimizer's kernel finds them by this
/// base and the numbers of their elements.
void check_copies(int rank, const rank_program& p) {
  std::optional<std::size_t> known;
  for (const op& o : p.ops) {
    if (!is_update(o) || o.operands.empty()) continue;
    std::size_t element = 0;
    for (const view& v : o.views) {
      const access& a = first_access(o, v);
      if (!v.written && v.port.ends_with("weight"))
        element = (a.begin - o.operands[0]) / element_size(a.type);
      if (v.port != "working_copy") continue;
      const std::size_t first = a.begin - element * element_size(a.type);
      if (known.value_or(first) != first)
        throw refusal(
            "RC7758: rank {}: \"{}\" updates the working copy of element {} at byte {}; its kernel writes it "
            "at byte {}",
            rank, o.name, element, a.begin, *known + element * element_size(a.type));
      known = first;
    }
  }
}

}  // namespace

void check_places(const program& p) {
  places known(values_of(p));
  for (std::size_t r = 0; r < p.ranks.size(); ++r) {
    known.add(static_cast<int>(r), p.ranks[r]);
    check_tails(static_cast<int>(r), p.ranks[r]);
    check_copies(static_cast<int>(r), p.ranks[r]);
  }
}

}  // namespace rankc::codegen::algebra
