// SPDX-License-Identifier: Apache-2.0
// The keys that a rank's queries see in one step of ring attention.
#pragma once
#include <rankc/runtime/chunks.hpp>

namespace rankc::runtime {

/// The keys of the rank `step` places before the query's own rank. In step 0 a query sees the keys up to
/// itself, in the order of the two chunks. In a later step there are two cases. If the other rank's front
/// chunk precedes the query's front chunk, each query sees the first half of the keys. Otherwise the second
/// half of the queries sees all keys. If attention is not causal, each query sees all keys.
/// Source: zig-zag ring attention (Zhu 2024), as in Megatron-LM.
struct ring_step {
  chunks of_keys;  // the tokens of the rank that holds the keys
  int count, first_query,
      keys;  // queries of a sequence, first that sees a key, number of keys it sees
  bool causal;

  RANKC_HOST_DEVICE constexpr ring_step(const chunks& has, int step, bool is_causal = true)
      : of_keys{has.seq, has.ranks, (has.rank - step + has.ranks) % has.ranks},
        count(has.count()),
        first_query(is_causal && step > has.rank ? has.length() : 0),
        keys(!is_causal || step == 0 || step > has.rank ? has.count() : has.length()),
        causal(is_causal && step == 0) {}
  /// The last key that a query sees; -1 if it sees none.
  RANKC_HOST_DEVICE constexpr int last_key(int query) const {
    if (causal) return query;
    return query < first_query ? -1 : keys - 1;
  }
};

/// The keys of one step. `first` is the index of the rank's first token among the tokens of all ranks.
RANKC_HOST_DEVICE constexpr ring_step step_of_ring(int rows, int seq, int ring, int step, int first,
                                                   bool is_causal = true) {
  return {chunks{seq, ring, first / (rows * (seq / ring))}, step, is_causal};
}

}  // namespace rankc::runtime
