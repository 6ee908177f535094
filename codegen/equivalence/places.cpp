// SPDX-License-Identifier: Apache-2.0
#include "places.hpp"

#include <rankc/runtime/hashed_call.hpp>

#include <algorithm>
#include <iterator>
#include <map>
#include <vector>

#include "claims.hpp"
#include "refusal.hpp"

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

/// The first byte of each value, of one rank after another.
class places {
 public:
  explicit places(std::size_t values) : of_(values) {}

  void add(int rank, const rank_program& p) {
    for (const op& o : p.ops)
      for (const access& w : o.writes) {
        place& known = of_[static_cast<std::size_t>(w.value)];
        if (known.rank == rank)
          throw refusal(
              "RC7270: rank {}: \"{}\" writes value {} to byte {}, and another write has it at byte {}; "
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
  std::vector<place> of_;  // of each value, on the last rank that writes it
};

/// Bytes behind the tensors of an optimizer, or of a norm: its kernel takes ranges of multiples of elements.
class tails {
 public:
  explicit tails(const rank_program& p) {
    for (const op& o : p.ops)
      for (const view& v : o.views) {
        const bool is_in_range =
            v.port == "gradient" || v.port.ends_with("weight") || v.port.ends_with("moment");
        if (v.written || !is_in_range || !(is_update(o) || o.row == "sum_squares")) continue;
        const access& a = first_access(o, v);
        const std::size_t apart = runtime::elements_apart * element_size(a.type), bytes = a.end - a.begin;
        if (bytes % apart != 0) ends_[a.end] = a.begin + (bytes / apart + 1) * apart;
      }
  }
  bool meet(const access& a) const {
    const auto behind = ends_.lower_bound(a.end);  // the first tail that begins where the access has ended
    return behind != ends_.begin() && std::prev(behind)->second > a.begin;
  }

 private:
  std::map<std::size_t, std::size_t> ends_;  // of each tail, by its begin
};

/// Nothing but padding is written there, which a reduction may add up in place.
void check_tails(int rank, const rank_program& p) {
  const tails behind(p);
  for (const op& o : p.ops)
    for (std::size_t w = 0; w < o.writes.size(); ++w) {
      const bool is_padding = w < o.holds.size() && o.holds[w].kind == holding_kind::padding;
      const bool is_reduced = o.kind == op_kind::collective && o.writes[w].replaces >= 0;
      if (!is_padding && !is_reduced && behind.meet(o.writes[w]))
        throw refusal(
            "RC7277: rank {}: \"{}\" writes bytes {} to {}; expected padding there, which the optimizer's "
            "kernel takes with the tensor before it",
            rank, o.name, o.writes[w].begin, o.writes[w].end);
    }
}

}  // namespace

void check_places(const program& p) {
  places known(values_of(p));
  for (std::size_t r = 0; r < p.ranks.size(); ++r) {
    known.add(static_cast<int>(r), p.ranks[r]);
    check_tails(static_cast<int>(r), p.ranks[r]);
  }
}

}  // namespace rankc::codegen::algebra
