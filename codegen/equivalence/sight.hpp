// SPDX-License-Identifier: Apache-2.0
// The keys that queries of attention see, by their positions in a sequence.
#pragma once
#include "domain.hpp"

namespace rankc::codegen::algebra {

/// A causal mask with or without a window, or no mask at all.
class sight {
 public:
  /// `window`: the number of keys that a query sees at most, itself included; 0: no window. `seq`: the
  /// length of a sequence.
  sight(bool causal, std::int64_t window, std::int64_t seq);

  /// The positions of the keys that at least one of these queries sees.
  runs keys_seen_by(const runs& queries) const;
  /// The positions of the queries that see at least one of these keys.
  runs queries_that_see(const runs& keys) const;

 private:
  runs widened(const runs& positions, std::int64_t before, std::int64_t after) const;
  bool causal_;
  std::int64_t reach_, seq_;  // reach: the number of keys before a query that it sees
};

/// The elements that are in both sets.
runs common(const runs&, const runs&);

}  // namespace rankc::codegen::algebra
