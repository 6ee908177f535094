// SPDX-License-Identifier: Apache-2.0
// The logits of single tokens, assembled from the ranks that hold them.
#pragma once
#include <rankc/trainer/command_line.hpp>
#include <rankc/runtime/engine.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace rankc::runtime {

/// Errors: failure (2) if a launcher has started one process per rank, because the command reads the logits
/// of all ranks.
void refuse_one_rank(const options&, const char* command);

/// The layout of the ranks that keep logits after a forward.
/// Errors: failure (1) if the program keeps none.
const layout& layout_with_logits(const description&);

/// Gives the engine sequences in the microbatch whose logits are kept. Sequence i is row i % rows of
/// data-parallel rank i / rows. Tokens after the end of a sequence, all other rows and all targets are 0.
/// Shapes: at most rows * dp sequences of at most seq tokens.
void set_sequences(engine&, std::span<const std::vector<std::int32_t>>);

/// The logits of the last evaluation at a position of sequence `row` of a data-parallel rank.
/// Shapes: (vocab_used).
std::vector<double> logits_at(engine&, int dp, int row, int position);

}  // namespace rankc::runtime
