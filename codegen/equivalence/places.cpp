// SPDX-License-Identifier: Apache-2.0
#include "places.hpp"

#include <algorithm>
#include <vector>

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

}  // namespace

void check_places(const program& p) {
  places known(values_of(p));
  for (std::size_t r = 0; r < p.ranks.size(); ++r) known.add(static_cast<int>(r), p.ranks[r]);
}

}  // namespace rankc::codegen::algebra
