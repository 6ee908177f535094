// SPDX-License-Identifier: Apache-2.0
// What the runtime's headers ask of the numbers of the last call, besides the bytes that they cover: told
// from the rank's place and the text's tables. A call that breaks it is a misuse of the runtime.
#pragma once
#include "recorder.hpp"

namespace translation {

/// `first` is the row of the whole table that is the first of these: of a parameter in the weights, in their
/// working copy or in the gradients.
void expect_first_row(at table, int rows, int first);

/// `first` is the position of the rank's first token: tokens are all of a microbatch, or split over tp in
/// rank order.
void expect_first_token(int tokens, int first);

/// `first` is the place of the rank's first token among those of all ranks of cp, of so many sequences of
/// this length.
void expect_chunks(int tokens, int rows, int seq, int ranks, int first);

/// The same at a step of their ring.
void expect_step(int tokens, int rows, int seq, int ranks, double step, int first);

/// `first` is the rank's first column of the vocabulary.
void expect_first_column(int vocab, int first);

/// `first` is the first of so many experts that the rank has.
void expect_first_expert(int own, int first);

/// Ranges decay where their parameters are matrices.
void expect_decay(std::span<const runtime::range>);

}  // namespace translation
