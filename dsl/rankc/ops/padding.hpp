// SPDX-License-Identifier: Apache-2.0
// The logits of rows that only pad a vocabulary, for instance so that tp divides it. They are masked, which
// sets them to a number so low that its exponential adds nothing to a softmax.
#pragma once
#include <rankc/contract/masked_logit.hpp>
#include <rankc/trace/backward.hpp>

namespace rankc {

namespace ops {

inline constexpr number_attribute columns{"columns", &attributes::columns};
inline constexpr op_row mask_padding_grad{
    .name = "mask_padding_grad",
    .ports = {out("dx", "tokens vocab@first").over("dy"), in("dy", "tokens vocab@first")},
    .rule = placement_rules::elementwise<true>,
    .sizes = "tokens vocab first number",
    .number = columns};
inline constexpr op_row mask_padding{
    .name = "mask_padding",
    .ports = {out("y", "tokens vocab@first").over("x"), in("x", "tokens vocab@first")},
    .rule =
        [](complaint& c, types in, type* out, const op& o) {
          placement_rules::elementwise<false>(c, in, out, o);
          const int size = in[0].shape[in[0].last()].size;
          if (!c.said && !(o.with.columns >= 1 && o.with.columns <= size))
            c.begin() << "it keeps " << o.with.columns << " columns of " << size << "; expected 1 to "
                      << size;
        },
    .dual = [](backward& b) { b.give("x", b.apply(mask_padding_grad, {b.gradient("y")})); },
    .sizes = "tokens vocab first number",
    .number = columns};

}  // namespace ops

/// The logits of the first `columns` rows of the vocabulary, and masked_logit for the others.
/// Shapes: logits (tokens, vocab).
/// Errors: RC210.
constexpr value mask_padding(operand logits, int columns) {
  return logits.v.in->apply(ops::mask_padding, {logits.v}, logits.from,
                            {.with = {.columns = static_cast<double>(columns)}});
}

}  // namespace rankc
