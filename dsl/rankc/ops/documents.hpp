// SPDX-License-Identifier: Apache-2.0
// Attention and learned positions of sequences that several documents lie in: a query sees the keys of its
// own document up to itself, and positions begin again at 0 in each. The last operand, `starts`, has of each
// token of the whole sequences the position of its document's first token; every rank has those of all
// tokens, in their order, however q, k and v lie. Rotary positions stay as they are: scores depend on
// differences of positions alone, and these are the same within a document.
// Source: Megatron-LM, reset_attention_mask and reset_position_ids.
#pragma once
#include <rankc/ops/ring.hpp>

namespace rankc {

namespace placement_rules {
/// Complain of starts of documents that a rank does not have of all its sequences.
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

namespace detail {
constexpr bool has_rule(const op_row& row) { return row.rule != nullptr; }
/// A row as it is within documents, by kernels of another name.
template <const op_row& Row>
constexpr op_row in_documents(std::string_view name, void (*dual)(backward&) = nullptr,
                              const op_row* of_chunks = nullptr) {
  op_row row = Row;
  row.name = row.host.name = row.cuda.name = name;
  row.ports[Row.count_ports()] = ports::in("starts", "places").index();
  if constexpr (has_rule(Row))
    row.rule = [](complaint& c, types in, type* out, const op& o) {
      Row.rule(c, in, out, o);
      placement_rules::starts(c, in.back());
    };
  row.dual = dual;
  row.of_chunks = of_chunks;
  return row;
}
/// The same of attention, which has no scratch for cuDNN: the runtime's own kernels know documents.
template <const op_row& Row>
constexpr op_row attention_in_documents(std::string_view name, void (*dual)(backward&) = nullptr,
                                        const op_row* of_chunks = nullptr) {
  op_row row = in_documents<Row>(name, dual, of_chunks);
  row.cuda.scratch = [](const op_sizes& s, const kernel_setting& k) {
    const cuda::attention_shape shape = ops::chunk_shape(s, k);
    return Row.find("d_o") < 0 ? cuda::attention_scratch(shape) : cuda::attention_delta_bytes(shape);
  };
  return row;
}
}  // namespace detail

namespace ops {
using detail::attention_in_documents;
using detail::in_documents;

inline constexpr op_row document_chunk_position_grad =
    in_documents<chunk_position_grad>("document_chunk_position_grad");
inline constexpr op_row document_chunk_position = in_documents<chunk_position>("document_chunk_position");
inline constexpr op_row document_position_grad =
    in_documents<position_grad>("document_position_grad", nullptr, &document_chunk_position_grad);
inline constexpr op_row document_position = in_documents<position>(
    "document_position",
    [](backward& b) {
      b.give("x", b.gradient("y"));
      b.contribute({"table"}, document_position_grad, {b.gradient("y"), b["starts"]});
    },
    &document_chunk_position);

inline constexpr op_row document_chunk_attention_grad =
    attention_in_documents<chunk_attention_grad>("document_chunk_attention_grad");
inline constexpr op_row document_chunk_attention =
    attention_in_documents<chunk_attention>("document_chunk_attention");
inline constexpr op_row document_attention_grad = attention_in_documents<attention_grad>(
    "document_attention_grad", nullptr, &document_chunk_attention_grad);
inline constexpr op_row document_attention = attention_in_documents<attention>(
    "document_attention",
    [](backward& b) {
      const value dq = b.apply(document_attention_grad,
                               {b.gradient("o"), b["q"], b["k"], b["v"], b["o"], b["lse"], b["starts"]});
      b.give("q", dq);
      b.give("k", result(dq, 1));
      b.give("v", result(dq, 2));
    },
    &document_chunk_attention);

inline constexpr op_row document_ring_attention_grad =
    attention_in_documents<ring_attention_grad>("document_ring_attention_grad");
inline constexpr op_row document_ring_attention =
    attention_in_documents<ring_attention>("document_ring_attention", [](backward& b) {
      const value_pair whole = rankc::detail::whole_of(b.t, merge_attention, b["o"].id);
      const value_pair kv = rankc::detail::handed_back(b.t, {b["k"], b["v"]}, b.of.with.ring);
      const value dq = b.apply(document_ring_attention_grad, {b.gradient("o"), b["q"], kv.first, kv.second,
                                                              whole.first, whole.second, b["starts"]});
      b.give("q", dq);
      b.give("k", result(dq, 1));
      b.give("v", result(dq, 2));
    });

}  // namespace ops

/// Learned positions within documents: of the table, row p - starts[p] is added to the token at position p of
/// its sequence.
/// Shapes: x (tokens, width), table (seq, width), starts (tokens), of `rows` sequences on a rank.
constexpr value position(operand x, value table, value starts, int rows, int seq) {
  return table.in->apply(ops::document_position, {x.v, table, starts}, x.from,
                         {.with = {.rows = rows, .seq = seq}});
}
/// Causal attention within documents. Shapes: as attention's; starts (tokens).
constexpr value attention(operand q, value k, value v, value starts, int rows, int seq) {
  return k.in->apply(ops::document_attention, {q.v, k, v, starts}, q.from,
                     {.with = {.rows = rows, .seq = seq}});
}
/// The same around a ring. Shapes: as ring_attention's; starts (tokens).
constexpr value ring_attention(operand q, value k, value v, value starts, int rows, int seq, int ring) {
  return detail::around_ring(q, {k, v}, {.rows = rows, .seq = seq, .ring = ring},
                             [&](value_pair kv, const attributes& with) {
                               return k.in->apply(ops::document_ring_attention,
                                                  {q.v, kv.first, kv.second, starts}, q.from, {.with = with});
                             });
}

}  // namespace rankc
