// SPDX-License-Identifier: Apache-2.0
// The all-to-all of sequence sharding by heads. Before it a rank holds all heads of its tokens, after it all
// tokens of its heads.
#pragma once
#include <rankc/runtime/chunks.hpp>

namespace rankc::runtime {

/// The unit of the exchange is `width` elements of a token: the heads that a rank holds between the
/// exchanges. Ranks send each other blocks of units: the tokens of one rank, in the heads of the other.
/// Source: DeepSpeed-Ulysses (Jacobs et al. 2023), with a rank's tokens as in `chunks`.
struct head_exchange {
  int rows, seq, ranks;  // number of sequences, their length, ranks that share them
  int width;
  bool to_heads;  // false: back to tokens

  RANKC_HOST_DEVICE constexpr int count() const { return rows * seq; }
  RANKC_HOST_DEVICE constexpr int block() const { return count() / ranks; }
  /// `sent` is the index in the operand of the i-th unit sent, in the order of blocks. `arrived` is the index
  /// in the result of the i-th unit received.
  RANKC_HOST_DEVICE constexpr int sent(int i) const { return to_heads ? among_tokens(i) : among_heads(i); }
  RANKC_HOST_DEVICE constexpr int arrived(int i) const { return to_heads ? among_heads(i) : among_tokens(i); }

 private:
  /// The index among a rank's tokens with all heads. The units of a token are contiguous, one for each rank.
  RANKC_HOST_DEVICE constexpr int among_tokens(int i) const { return i % block() * ranks + i / block(); }
  /// The index among all tokens in the order of their positions, with one rank's heads.
  RANKC_HOST_DEVICE constexpr int among_heads(int i) const {
    const int token = i % block();
    const chunks has{seq, ranks, i / block()};
    return token / has.count() * seq + has.position(token % has.count());
  }
};

}  // namespace rankc::runtime
