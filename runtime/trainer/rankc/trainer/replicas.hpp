// SPDX-License-Identifier: Apache-2.0
// What several ranks hold alike: weights and moments that a plan replicates must have the same bits on all of
// them after each step. Where they have not, a memory or a processor has changed them without a word.
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

  /// Whether ranks have anything in common.
  bool empty() const { return groups_.empty(); }

  /// Hash it all and compare; all processes call it, between two steps.
  /// Errors: failure (70), the same on all ranks, naming step, parameter, and which ranks have which bits.
  void check(engine&, const placement&, std::int64_t step) const;

 private:
  /// A part of a region of a parameter, and where each rank of its group has it.
  struct piece {
    std::string name;
    region where;
    std::vector<shard> holders;
  };
  /// Pieces that the same ranks hold.
  struct group {
    std::vector<int> ranks;
    std::vector<piece> pieces;
  };
  std::vector<std::string> hashes_of(engine&, const group&, std::size_t member) const;
  [[noreturn]] void refuse(const group&, const std::vector<std::string>& hashes, std::int64_t step) const;

  std::vector<group> groups_;
};

}  // namespace rankc::runtime
