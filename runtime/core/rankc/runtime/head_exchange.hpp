// SPDX-License-Identifier: Apache-2.0
// The all-to-all of ranks that share out sequences: of its own tokens a rank has all heads, of its own heads
// all tokens.
#pragma once
#include <rankc/runtime/chunks.hpp>

namespace rankc::runtime {

/// What moves as one: `width` elements of a token, the heads that a rank has between the exchanges. Ranks
/// send each other blocks of them: the tokens of one rank, in the heads of the other.
/// Source: DeepSpeed-Ulysses (Jacobs et al. 2023), with the tokens of a rank as `chunks` has them.
struct head_exchange {
  int rows, seq, ranks;  // sequences, their length, who shares them out
  int width;
  bool to_heads;  // else back to tokens

  RANKC_HOST_DEVICE constexpr int count() const { return rows * seq; }
  RANKC_HOST_DEVICE constexpr int block() const { return count() / ranks; }
  /// Where the i-th of what is sent, block after block, lies in the operand; and where the i-th of what
  /// arrives belongs.
  RANKC_HOST_DEVICE constexpr int sent(int i) const { return to_heads ? among_tokens(i) : among_heads(i); }
  RANKC_HOST_DEVICE constexpr int arrived(int i) const { return to_heads ? among_heads(i) : among_tokens(i); }

 private:
  /// Of a rank's tokens, each with all heads: those of one rank after those of another.
  RANKC_HOST_DEVICE constexpr int among_tokens(int i) const { return i % block() * ranks + i / block(); }
  /// Of all tokens in the order of their positions, each with a rank's heads.
  RANKC_HOST_DEVICE constexpr int among_heads(int i) const {
    const int token = i % block();
    const chunks has{seq, ranks, i / block()};
    return token / has.count() * seq + has.position(token % has.count());
  }
};

}  // namespace rankc::runtime
