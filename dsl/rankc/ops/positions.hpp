// SPDX-License-Identifier: Apache-2.0
// Rotary and learned positions. Learned positions have four forms: whole sequences or the chunks that cp
// gives a rank, with or without documents. Lowering chooses the form with chunks.
#pragma once
#include <rankc/ops/documents.hpp>

namespace rankc {

struct position_form {
  bool gradient = false, chunks = false, documents = false;
};

namespace placement_rules {
template <position_form Form>
constexpr void learned_position(complaint& c, types in, type* out, const op& o) {
  if constexpr (Form.gradient)
    for (axis a : axes) out[0][a] = in[0][a].k == placement::V ? P : in[0][a];
  else position(c, in, out, o);
  if constexpr (Form.documents) starts(c, in.back());
}
}  // namespace placement_rules

namespace ops {
constexpr void position_backward(backward&);

template <position_form Form>
constexpr std::string_view position_name() {
  constexpr std::string_view names[2][2][2]{
      {{"position", "document_position"}, {"chunk_position", "document_chunk_position"}},
      {{"position_grad", "document_position_grad"}, {"chunk_position_grad", "document_chunk_position_grad"}}};
  return names[Form.gradient][Form.chunks][Form.documents];
}
template <position_form Form>
constexpr op_row make_position();

template <position_form Form>
inline constexpr op_row position_row = make_position<Form>();

template <position_form Form>
constexpr op_row make_position() {
  op_row row{.name = position_name<Form>(),
             .ports = {out("y", "tokens@first width").over("x"), in("x", "tokens@first width"),
                       parameter("table", "seq width")},
             .sizes = Form.chunks ? "tokens width rows seq cp first" : "tokens width seq first"};
  if constexpr (Form.gradient) {
    row.ports[0] = sum("dtable", "seq width");
    row.ports[1] = in("dy", "tokens@first width");
    row.ports[2] = {};
  }
  if constexpr (Form.documents) row.ports[row.count_ports()] = in("starts", "places").index();
  if constexpr (!Form.chunks) {
    row.rule = placement_rules::learned_position<Form>;
    row.in_chunks = &position_row<position_form{Form.gradient, true, Form.documents}>;
    if constexpr (!Form.gradient) row.dual = position_backward;
  }
  return row;
}
inline constexpr number_attribute theta{"theta", &attributes::theta};
inline constexpr op_row rope_grad{
    .name = "rope_grad",
    .ports = {out("dx", "tokens heads*dim : stride").over("dy"), in("dy", "tokens heads*dim : stride"),
              rotary("table", "seq dim")},
    .rule = placement_rules::elementwise<true>,
    .sizes = "tokens heads dim seq",
    .cuda = {.sizes = "tokens heads dim seq stride"},
    .number = theta};
inline constexpr op_row rope{.name = "rope",
                             .ports = {out("y", "tokens heads*dim : stride").over("x"),
                                       in("x", "tokens heads*dim : stride"), rotary("table", "seq dim")},
                             .rule = placement_rules::rope,
                             .dual = [](backward& b) { b.give("x", b.apply(rope_grad, {b.gradient("y")})); },
                             .sizes = "tokens heads dim seq",
                             .cuda = {.sizes = "tokens heads dim seq stride"},
                             .number = theta};

template <bool Chunks, bool Documents>
inline constexpr const op_row* position_pair[]{&position_row<position_form{false, Chunks, Documents}>,
                                               &position_row<position_form{true, Chunks, Documents}>};
/// Indexed by [documents][chunks][gradient].
inline constexpr const op_row* const* position_pairs[2][2]{
    {position_pair<false, false>, position_pair<true, false>},
    {position_pair<false, true>, position_pair<true, true>}};
constexpr const op_row& find_position(position_form f) {
  return *position_pairs[f.documents][f.chunks][f.gradient];
}
inline constexpr const op_row& position = find_position({});
inline constexpr const op_row& document_position = find_position({.documents = true});

constexpr void position_backward(backward& b) {
  b.give("x", b.gradient("y"));
  const bool documents = has_starts(*b.of.kind);
  const op_row& gradient = find_position({.gradient = true, .documents = documents});
  if (documents) b.contribute({"table"}, gradient, {b.gradient("y"), b["starts"]});
  else b.contribute({"table"}, gradient, {b.gradient("y")});
}
}  // namespace ops

/// Rotary position embedding: rotates pairs of elements of each head by an angle that depends on the
/// position. `theta` is the base of the wavelengths.
/// Shapes: x (tokens, heads), heads of an even size; positions repeat every `seq` tokens.
/// Errors: RC210; the models check theta (RC238) and the scaling (RC251).
/// Source: Su et al. 2021.
constexpr value rope(operand x, int seq, double theta, const rope_scaling& scaling = {}) {
  return x.v.in->apply(ops::rope, {x.v}, x.from, {.with = {.seq = seq, .theta = theta, .scaling = scaling}});
}
/// Learned positions: adds row n % seq of the table to token n.
/// Shapes: x (tokens, width), table (seq, width).
/// Errors: RC210; RC259 if the sequences hold documents, which need the overload with starts.
constexpr value position(operand x, value table, int seq) {
  return table.in->apply(ops::position, {x.v, table}, x.from, {.with = {.seq = seq}});
}
/// Learned positions within documents: adds row p - starts[p] of the table to the token at position p of its
/// sequence. A rank has `rows` sequences.
/// Shapes: x (tokens, width), table (seq, width), starts (tokens).
/// Errors: RC210.
constexpr value position(operand x, value table, value starts, int rows, int seq) {
  return table.in->apply(ops::document_position, {x.v, table, starts}, x.from,
                         {.with = {.rows = rows, .seq = seq}});
}

}  // namespace rankc
