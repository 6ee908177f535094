// SPDX-License-Identifier: Apache-2.0
// The requirements of the runtime's headers on the numbers of the last call, besides the bytes that they
// cover, from the rank's place and the text's tables. A call that violates one misuses the runtime.
#pragma once
#include "recorder.hpp"

namespace translation {

/// Check that `first` is the offset of these rows in the whole table. `table`: a parameter in the weights,
/// their working copy or the gradients.
void expect_first_row(at table, int rows, int first);

/// Check that `first` is the position of the rank's first token. Tokens are a whole microbatch's, or split
/// over tp in rank order.
void expect_first_token(int tokens, int first);

/// Check that `first` is the index of the rank's first token when the tokens of all cp ranks are
/// concatenated, for `rows` sequences of length `seq`.
void expect_chunks(int tokens, int rows, int seq, int ranks, int first);

/// The same for a step of the ring.
void expect_step(int tokens, int rows, int seq, int ranks, double step, int first);

/// Check that `first` is the rank's first column of the vocabulary.
void expect_first_column(int vocab, int first);

/// Check that `first` is the first of the rank's experts, of which it has `own`.
void expect_first_expert(int own, int first);

/// Check that a range decays exactly if its parameters are matrices.
void expect_decay(std::span<const runtime::range>);

}  // namespace translation
