// SPDX-License-Identifier: Apache-2.0
// Sets of a rank's ops, one bit for each, and their values at the end of ops that communicate across ranks.
#pragma once
#include "schedule.hpp"

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace rankc::codegen::verifying {

using bits = std::vector<std::uint64_t>;
inline bool has(const bits& set, int i) { return set[i / 64] >> (i % 64) & 1; }
inline void add(bits& set, int i) { set[i / 64] |= std::uint64_t{1} << (i % 64); }
inline void unite(bits& set, const bits& other) {
  for (std::size_t i = 0; i < set.size(); ++i) set[i] |= other[i];
}

/// Computes the sets for ops in the certificate's order.
class end_sets {
 public:
  /// `none`: an empty set.
  end_sets(const step&, const schedule&, bits none);

  /// For each of `members`, which communicate with each other, the ops that have surely ended when it ends.
  /// `starts`: the ops that have ended when it starts. A receive, and a member of a collective, ends after
  /// all members have started; a member of a shift after its giver has. The last op of a row-pipelined pair
  /// ends after the pairs of all members have started.
  std::vector<bits> at_ends(std::span<const id> members, std::vector<bits> starts);

 private:
  /// The pair of which an op is the first or the last.
  struct row_pair {
    int collective = -1;  // listed_op; -1: the op is in no pair
    bool is_first = false;
  };
  struct kept {
    bits set;
    std::size_t uses;
  };
  bits at_starts_of_pairs(std::span<const id> members);
  std::vector<bits> after_givers(std::span<const id> members, const std::vector<bits>& starts) const;

  const step& d_;
  const schedule& schedule_;
  const bits none_;
  std::vector<std::vector<row_pair>> pair_of_;  // (programs, ops)
  std::map<id, kept> at_start_;  // by collective of a pair, until the pairs of all members have ended
};

}  // namespace rankc::codegen::verifying
