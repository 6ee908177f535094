// SPDX-License-Identifier: Apache-2.0
// Table lookup by token id.
#pragma once
#include <rankc/trace/backward.hpp>

namespace rankc {

namespace ops {

inline constexpr op_row embedding_grad{
    .name = "embedding_grad",
    .ports = {sum("dtable", "rows_held@first width"), in("dy", "tokens width"), in("ids", "tokens").index()},
    .rule = placement_rules::embedding_gradient,
    .sizes = "tokens rows_held width first"};
inline constexpr op_row embedding{
    .name = "embedding",
    .ports = {out("y", "tokens width"), in("ids", "tokens").index(),
              parameter("table", "rows_held@first width")},
    .rule = placement_rules::embedding,
    .dual = [](backward& b) { b.contribute({"table"}, embedding_grad, {b.gradient("y"), b["ids"]}); },
    .sizes = "tokens rows_held width first"};

}  // namespace ops

/// Looks up a row of the table for each token id. A table that is sharded along the vocabulary gives a
/// pending sum.
/// Shapes: ids (tokens), table (vocab, width); result (tokens, width).
/// Errors: RC210, RC223.
constexpr value embedding(operand ids, value table) {
  return table.in->apply(ops::embedding, {ids.v, table}, ids.from);
}

}  // namespace rankc
