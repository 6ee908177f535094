// SPDX-License-Identifier: Apache-2.0
// Sequences that hold several documents. Attention is causal inside each document, and learned positions
// start at 0 in each document. The operand `starts` has one entry for each token of the whole sequences: the
// position of the first token of its document. Every rank has the starts of all tokens of its sequences, even
// if q, k and v are sharded over cp. Rotary positions need no change: scores depend only on differences of
// positions.
// Source: Megatron-LM, reset_attention_mask and reset_position_ids.
#pragma once
#include <rankc/trace/backward.hpp>

namespace rankc {

namespace placement_rules {
/// Complains if `of` is not the starts of all tokens of the rank's sequences.
constexpr void starts(complaint& c, const type& of) {
  if (of.holds != element::index && !c.said) {
    complaint::put_shape(c.begin() << "starts is ", of);
    c.text << "; expected the starts of documents, the layer_context's starts";
  }
  for (axis a : axes)
    if (of[a] != (row(a).shares == part::sequences ? V(0) : I))
      c.found(
          a, "starts", of,
          row(a).shares == part::sequences ? "sharded along the tokens (V)" : "the same on every rank (I)",
          "take the layer_context's starts");
}
}  // namespace placement_rules

/// True if the op reads the starts of documents.
constexpr bool has_starts(const op_row& row) { return row.find("starts") >= 0; }

}  // namespace rankc
