// SPDX-License-Identifier: Apache-2.0
// Comparison of replicated weights and moments, which must have the same bits on all their ranks after each
// step. A difference means that memory or a processor has corrupted them silently.
#pragma once
#include <rankc/runtime/placement.hpp>
#include <rankc/trainer/parameters.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace rankc::runtime {

class replicas {
 public:
  explicit replicas(const description&);

  /// True if no two ranks replicate a shard.
  bool empty() const { return groups_.empty(); }

  /// Hashes all replicated shards and compares them. All processes call it, between two steps.
  /// Errors: failure (70), the same on all ranks, that names step, parameter, and the ranks of each bit
  /// pattern.
  void check(engine&, const placement&, std::int64_t step) const;

 private:
  /// A replicated part of a parameter's region, and its place on each rank of its group.
  struct piece {
    std::string name;
    region where;
    std::vector<shard> holders;
  };
  /// The pieces that the same ranks replicate.
  struct group {
    std::vector<int> ranks;
    std::vector<piece> pieces;
  };
  std::vector<std::string> hashes_of(engine&, const group&, std::size_t member) const;
  [[noreturn]] void refuse(const group&, const std::vector<std::string>& hashes, std::int64_t step) const;

  std::vector<group> groups_;
};

}  // namespace rankc::runtime
