// SPDX-License-Identifier: Apache-2.0
// Which tokens of a sequence a rank has where several share it out.
#pragma once
#include <rankc/runtime/host_device.hpp>

namespace rankc::runtime {

/// Of twice as many chunks as there are ranks, rank i has chunk i from the front and its counterpart from the
/// back, one after the other, so that causal attention costs all ranks alike; one rank has the whole
/// sequence. Keys that were gathered lie rank after rank, each with its chunks of every sequence.
/// Source: zig-zag context parallelism as in Llama 3 (Grattafiori et al. 2024) and Megatron-LM.
struct chunks {
  int seq, ranks = 1, rank = 0;

  /// Tokens of a chunk, and of all that a rank has of a sequence.
  RANKC_HOST_DEVICE constexpr int length() const { return ranks == 1 ? seq : seq / (2 * ranks); }
  RANKC_HOST_DEVICE constexpr int count() const { return seq / ranks; }
  /// The position in the sequence of the rank's token at a place, and the place of a position; -1: another
  /// rank has it.
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
  /// How many of the rank's tokens are before a position.
  RANKC_HOST_DEVICE constexpr int count_before(int position) const {
    const int n = length(), in_front = part_of_chunk(position - rank * n, n),
              behind = part_of_chunk(position - (2 * ranks - 1 - rank) * n, n);
    return ranks == 1 ? position : in_front + behind;
  }
  /// The rank that has a position, and the row of gathered keys that is at it in sequence `row` of `rows`.
  RANKC_HOST_DEVICE constexpr int holder(int position) const {
    const int chunk = position / length();
    return chunk < ranks ? chunk : 2 * ranks - 1 - chunk;
  }
  RANKC_HOST_DEVICE constexpr int gathered_row(int position, int row, int rows) const {
    const int by = holder(position);
    return (by * rows + row) * count() + chunks{seq, ranks, by}.place(position);
  }

 private:
  /// How many of `tokens`, counted from the start of a chunk of `n`, lie in it.
  RANKC_HOST_DEVICE static constexpr int part_of_chunk(int tokens, int n) {
    const int after_start = tokens < 0 ? 0 : tokens;
    return after_start < n ? after_start : n;
  }
};

/// What a rank has of `rows` sequences.
/// Shapes: from (rows, seq), to (rows, count).
template <class T>
constexpr void copy_chunks(const T* from, int rows, const chunks& has, T* to) {
  for (int row = 0; row < rows; ++row, from += has.seq)
    for (int place = 0; place < has.count(); ++place) *to++ = from[has.position(place)];
}

}  // namespace rankc::runtime
