// SPDX-License-Identifier: Apache-2.0
// What a rank's queries see of the keys that have come to it around a ring.
#pragma once
#include <rankc/runtime/chunks.hpp>

namespace rankc::runtime {

/// The keys that a query sees of the rank that is `step` before its own rank. In step 0 a query sees the
/// keys up to itself, in the order of the two chunks. If the other rank's chunk from the front lies before
/// the query's, the query sees the first half of the keys. If it lies behind, the second half of the
/// queries sees all keys. If attention is not causal, each query sees all keys.
/// Source: zig-zag ring attention (Zhu 2024), as in Megatron-LM.
struct ring_step {
  chunks of_keys;  // the tokens of the rank that has them
  int count, first_query,
      keys;  // of a sequence: queries, as many as keys; the first that sees any, and how many these see
  bool causal;

  RANKC_HOST_DEVICE constexpr ring_step(const chunks& has, int step, bool is_causal = true)
      : of_keys{has.seq, has.ranks, (has.rank - step + has.ranks) % has.ranks},
        count(has.count()),
        first_query(is_causal && step > has.rank ? has.length() : 0),
        keys(!is_causal || step == 0 || step > has.rank ? has.count() : has.length()),
        causal(is_causal && step == 0) {}
  /// The last key that a query sees; -1: none.
  RANKC_HOST_DEVICE constexpr int last_key(int query) const {
    if (causal) return query;
    return query < first_query ? -1 : keys - 1;
  }
};

/// `first` is the place of the rank's first token among those of all.
RANKC_HOST_DEVICE constexpr ring_step step_of_ring(int rows, int seq, int ring, int step, int first,
                                                   bool is_causal = true) {
  return {chunks{seq, ring, first / (rows * (seq / ring))}, step, is_causal};
}

}  // namespace rankc::runtime
