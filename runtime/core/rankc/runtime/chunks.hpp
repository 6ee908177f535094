// SPDX-License-Identifier: Apache-2.0
// The tokens of a sequence that a rank of context parallelism holds.
#pragma once
#include <rankc/runtime/host_device.hpp>

namespace rankc::runtime {

/// The sequence has twice as many chunks as ranks. Rank i holds chunk i from the front and chunk i from the
/// back, in this order, so causal attention costs all ranks alike. With one rank there is one chunk, the
/// whole sequence. Gathered keys are sorted by rank, and each rank's keys contain its chunks of every
/// sequence.
/// Source: zig-zag context parallelism as in Llama 3 (Grattafiori et al. 2024) and Megatron-LM.
struct chunks {
  int seq, ranks = 1, rank = 0;

  /// The tokens of one chunk, and all tokens of a sequence that the rank holds.
  RANKC_HOST_DEVICE constexpr int length() const { return ranks == 1 ? seq : seq / (2 * ranks); }
  RANKC_HOST_DEVICE constexpr int count() const { return seq / ranks; }
  /// `position` is the position in the sequence of the rank's token at `place`. `place` is the inverse; it is
  /// -1 if another rank holds the position.
  RANKC_HOST_DEVICE constexpr int position(int place) const {
    const int n = length();
    return place < n ? rank * n + place : (2 * ranks - 2 - rank) * n + place;
  }
  RANKC_HOST_DEVICE constexpr int place(int position) const {
    const int n = length(), chunk = position / n;
    if (chunk == rank) return position - rank * n;
    if (chunk == 2 * ranks - 1 - rank) return position - (chunk - 1) * n;
    return -1;
  }
  /// The number of the rank's tokens before a position.
  RANKC_HOST_DEVICE constexpr int count_before(int position) const {
    const int n = length(), in_front = part_of_chunk(position - rank * n, n),
              behind = part_of_chunk(position - (2 * ranks - 1 - rank) * n, n);
    return ranks == 1 ? position : in_front + behind;
  }
  /// The rank that holds a position, and the row of the gathered keys at that position in sequence `row` of
  /// `rows`.
  RANKC_HOST_DEVICE constexpr int holder(int position) const {
    const int chunk = position / length();
    return chunk < ranks ? chunk : 2 * ranks - 1 - chunk;
  }
  RANKC_HOST_DEVICE constexpr int gathered_row(int position, int row, int rows) const {
    const int by = holder(position);
    return (by * rows + row) * count() + chunks{seq, ranks, by}.place(position);
  }

 private:
  /// The number of the first `tokens` tokens, counted from the start of a chunk of `n`, that are in the
  /// chunk.
  RANKC_HOST_DEVICE static constexpr int part_of_chunk(int tokens, int n) {
    const int after_start = tokens < 0 ? 0 : tokens;
    return after_start < n ? after_start : n;
  }
};

/// Copies the part of `rows` sequences that a rank holds.
/// Shapes: from (rows, seq), to (rows, count).
template <class T>
constexpr void copy_chunks(const T* from, int rows, const chunks& has, T* to) {
  for (int row = 0; row < rows; ++row, from += has.seq)
    for (int place = 0; place < has.count(); ++place) *to++ = from[has.position(place)];
}

}  // namespace rankc::runtime
