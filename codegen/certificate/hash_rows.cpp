// SPDX-License-Identifier: Apache-2.0
#include "hash_rows.hpp"

#include <rankc/runtime/hashed_places.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rankc::codegen {

namespace {

/// The bytes and the rows of a microbatch of an input.
struct placed_microbatch {
  const access* at;
  const holding* what;
};
/// The microbatches of an input of a rank, in the order of their bytes.
using microbatches = std::vector<placed_microbatch>;
using microbatches_of_inputs = std::map<std::string, microbatches>;

std::int64_t first_row(const holding& h) { return h.box.empty() ? 0 : h.box[0].first; }

microbatches_of_inputs list_inputs(const op& begin) {
  microbatches_of_inputs all;
  for (std::size_t i = 0; i < std::min(begin.holds.size(), begin.writes.size()); ++i)
    if (const holding& h = begin.holds[i]; is_input(h.kind))
      all[h.name.empty() ? holding_names[static_cast<int>(h.kind)] : "input " + h.name].emplace_back(
          &begin.writes[i], &h);
  for (auto& [name, placed] : all)
    std::sort(placed.begin(), placed.end(),
              [](const auto& x, const auto& y) { return x.at->begin < y.at->begin; });
  return all;
}

/// The ranks of the world that run a program. Those that the program does not list have the rows of a listed
/// rank, some rows later.
class world_rows {
 public:
  world_rows(const program& p, int alike) : p_(p) {
    for (std::size_t r = 0; r < p.ranks.size(); ++r)
      if (p.ranks[r].alike == alike)
        listed_.emplace(p.number_of(static_cast<int>(r)), list_inputs(p.ranks[r].ops.front()));
    for (int number = 0; number < p.world_size(); ++number)
      if (likened of = liken(number); listed_.contains(of.base)) ranks_.push_back(std::move(of));
  }

  std::uint64_t hash() const {
    std::uint64_t all = 0;
    for (const auto& [name, placed] : listed_.begin()->second) all += hash_of(name, placed);
    return all;
  }

 private:
  /// A rank, and the listed rank at the same coordinates, but at index 0 along each axis that is listed in
  /// part. For each of these axes: the listed rank at index 1, and the index of the rank.
  struct likened {
    int number, base;
    std::vector<std::pair<int, int>> along;
  };
  likened liken(int number) const {
    likened of{number, number, {}};
    int stride = 1;
    for (auto a = p_.mesh.rbegin(); a != p_.mesh.rend(); stride *= a->size, ++a)
      if (a->listed < a->size) {
        of.along.emplace_back(stride, number / stride % a->size);
        of.base -= of.along.back().second * stride;
      }
    for (auto& [neighbour, index] : of.along) neighbour += of.base;
    return of;
  }

  const holding* first_microbatch(int number, const std::string& input) const {
    const auto rank = listed_.find(number);
    if (rank == listed_.end()) return nullptr;
    const auto placed = rank->second.find(input);
    return placed == rank->second.end() ? nullptr : placed->second.front().what;
  }

  std::uint64_t hash_of(const std::string& input, const microbatches& placed) const {
    const access& at = *placed[0].at;
    const std::int64_t apart =
        placed.size() > 1 ? first_row(*placed[1].what) - first_row(*placed[0].what) : 0;
    runtime::row_hasher hash(
        {input, static_cast<runtime::hashed_type>(at.type), at.end - at.begin, std::ssize(placed), apart});
    for (const likened& of : ranks_) {
      const holding* const base = first_microbatch(of.base, input);
      if (base == nullptr) continue;
      std::int64_t later = 0;
      for (const auto& [neighbour, index] : of.along)
        if (const holding* const next = first_microbatch(neighbour, input))
          later += index * (first_row(*next) - first_row(*base));
      hash.begin_rank(of.number);
      for (const box_range& b : base->box) hash.add_rows(b.first + later, b.count);
    }
    return hash.value();
  }

  const program& p_;
  std::map<int, microbatches_of_inputs> listed_;  // by the rank's number
  std::vector<likened> ranks_;
};

}  // namespace

std::uint64_t hash_of_rows(const program& p, int alike) { return world_rows(p, alike).hash(); }

}  // namespace rankc::codegen
