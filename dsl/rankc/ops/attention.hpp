// SPDX-License-Identifier: Apache-2.0
// Causal attention, rotary and learned positions.
#pragma once
#include <rankc/contract/attention_scratch.hpp>
#include <rankc/contract/kernel_scratch.hpp>
#include <rankc/trace/backward.hpp>

namespace rankc {

namespace ops {

inline constexpr op_row rope_grad{
    .name = "rope_grad",
    .ports = {out("dx", "tokens heads*dim : stride").over("dy"), in("dy", "tokens heads*dim : stride"),
              rotary("table", "seq dim")},
    .rule = placement_rules::elementwise<true>,
    .flops = no_flops,
    .host = {"rope_grad", "tokens heads dim seq"},
    .cuda = {"rope_grad", "tokens heads dim seq stride"}};
inline constexpr op_row rope{.name = "rope",
                             .ports = {out("y", "tokens heads*dim : stride").over("x"),
                                       in("x", "tokens heads*dim : stride"), rotary("table", "seq dim")},
                             .rule = placement_rules::rope,
                             .dual = [](backward& b) { b.give("x", b.apply(rope_grad, {b.gradient("y")})); },
                             .flops = no_flops,
                             .host = {"rope", "tokens heads dim seq"},
                             .cuda = {"rope", "tokens heads dim seq stride"}};

inline constexpr op_row chunk_position_grad{
    .name = "chunk_position_grad",
    .ports = {sum("dtable", "seq width"), in("dy", "tokens@first width")},
    .flops = no_flops,
    .host = {"chunk_position_grad", "tokens width rows seq cp first"},
    .cuda = {"chunk_position_grad", "tokens width rows seq cp first"}};
inline constexpr op_row chunk_position{
    .name = "chunk_position",
    .ports = {out("y", "tokens@first width").over("x"), in("x", "tokens@first width"),
              parameter("table", "seq width")},
    .flops = no_flops,
    .host = {"chunk_position", "tokens width rows seq cp first"},
    .cuda = {"chunk_position", "tokens width rows seq cp first"}};
inline constexpr op_row position_grad{.name = "position_grad",
                                      .ports = {sum("dtable", "seq width"), in("dy", "tokens@first width")},
                                      .rule =
                                          [](complaint&, types in, type* out, const op&) {
                                            for (axis a : axes)
                                              out[0][a] = in[0][a].k == placement::V ? P : in[0][a];
                                          },
                                      .flops = no_flops,
                                      .host = {"position_grad", "tokens width seq first"},
                                      .cuda = {"position_grad", "tokens width seq first"},
                                      .of_chunks = &chunk_position_grad};
inline constexpr op_row position{.name = "position",
                                 .ports = {out("y", "tokens@first width").over("x"),
                                           in("x", "tokens@first width"), parameter("table", "seq width")},
                                 .rule = placement_rules::position,
                                 .dual =
                                     [](backward& b) {
                                       b.give("x", b.gradient("y"));
                                       b.contribute({"table"}, position_grad, {b.gradient("y")});
                                     },
                                 .flops = no_flops,
                                 .host = {"position", "tokens width seq first"},
                                 .cuda = {"position", "tokens width seq first"},
                                 .of_chunks = &chunk_position};

constexpr cuda::attention_shape attention_shape(const op_sizes& s, const kernel_setting& k) {
  const auto size = [&](std::string_view symbol) { return static_cast<int>(s(symbol)); };
  return {size("rows"), size("seq"), size("heads"),  size("kv_heads"),
          size("dim"),  k.element,   k.deterministic};
}
/// Bytes of scratch for a rank's queries of one sequence and `keys` of its keys.
template <bool Gradient>
constexpr std::size_t host_scores_with(const op_sizes& s, const kernel_setting& k, double keys) {
  const auto queries = static_cast<std::size_t>(s("tokens") / s("rows")), of = static_cast<std::size_t>(keys);
  return Gradient ? host::attention_grad_scratch(queries, of, k.element)
                  : host::attention_scratch(queries, of, k.element);
}
template <bool Gradient>
constexpr std::size_t host_scores(const op_sizes& s, const kernel_setting& k) {
  return host_scores_with<Gradient>(s, k, s("seq"));
}
/// The shape for a rank's tokens of each sequence.
constexpr cuda::attention_shape chunk_shape(const op_sizes& s, const kernel_setting& k) {
  cuda::attention_shape shape = attention_shape(s, k);
  shape.seq = static_cast<int>(s("tokens") / s("rows"));
  return shape;
}

// Attention of a rank's chunks of each sequence over the keys and values of all of it.
inline constexpr op_row chunk_attention_grad{
    .name = "chunk_attention_grad",
    .ports = {out("dq", "tokens@first heads*dim : q_stride"), out("dk", "keys kv_heads*dim : kv_stride"),
              out("dv", "keys kv_heads*dim : kv_stride"), scratch("scratch"), in("d_o", "tokens heads*dim"),
              in("q", "tokens@first heads*dim : q_stride"), in("k", "keys kv_heads*dim : kv_stride"),
              in("v", "keys kv_heads*dim : kv_stride"), in("o", "tokens heads*dim"),
              in("lse", "tokens heads").wide()},
    .flops = [](const op_sizes& s) { return 10 * s("tokens") * s("heads") * s("dim") * s("seq"); },
    .host = {"chunk_attention_grad", "rows seq heads kv_heads dim cp first", host_scores<true>},
    .cuda = {"chunk_attention_grad", "rows seq heads kv_heads dim q_stride kv_stride cp first",
             [](const op_sizes& s, const kernel_setting& k) {
               return cuda::chunk_attention_grad_scratch(chunk_shape(s, k));
             }}};
inline constexpr op_row chunk_attention{
    .name = "chunk_attention",
    .ports = {out("o", "tokens heads*dim"), out("lse", "tokens heads").wide(), scratch("scratch"),
              in("q", "tokens@first heads*dim : q_stride"), in("k", "keys kv_heads*dim : kv_stride"),
              in("v", "keys kv_heads*dim : kv_stride")},
    .flops = [](const op_sizes& s) { return 4 * s("tokens") * s("heads") * s("dim") * s("seq"); },
    .host = {"chunk_attention", "rows seq heads kv_heads dim cp first", host_scores<false>},
    .cuda = {"chunk_attention", "rows seq heads kv_heads dim q_stride kv_stride cp first",
             [](const op_sizes& s, const kernel_setting& k) {
               return cuda::chunk_attention_scratch(chunk_shape(s, k));
             }},
    .family = op_family::attention};

inline constexpr op_row attention_grad{
    .name = "attention_grad",
    .ports = {out("dq", "tokens heads*dim : q_stride"), out("dk", "tokens kv_heads*dim : kv_stride"),
              out("dv", "tokens kv_heads*dim : kv_stride"), scratch("scratch"), in("d_o", "tokens heads*dim"),
              in("q", "tokens heads*dim : q_stride"), in("k", "tokens kv_heads*dim : kv_stride"),
              in("v", "tokens kv_heads*dim : kv_stride"), in("o", "tokens heads*dim"),
              in("lse", "tokens heads").wide()},
    .rule = placement_rules::attention_gradient,
    .flops = [](const op_sizes& s) { return 10 * s("tokens") * s("heads") * s("dim") * s("seq"); },
    .host = {"attention_grad", "rows seq heads kv_heads dim", host_scores<true>},
    .cuda = {"attention_grad", "rows seq heads kv_heads dim q_stride kv_stride",
             [](const op_sizes& s, const kernel_setting& k) {
               return cuda::attention_grad_scratch(attention_shape(s, k));
             }},
    .of_chunks = &chunk_attention_grad};
inline constexpr op_row attention{
    .name = "attention",
    .ports = {out("o", "tokens heads*dim"), out("lse", "tokens heads").wide(), scratch("scratch"),
              in("q", "tokens heads*dim : q_stride"), in("k", "tokens kv_heads*dim : kv_stride"),
              in("v", "tokens kv_heads*dim : kv_stride")},
    .rule = placement_rules::attention,
    .dual =
        [](backward& b) {
          const value dq =
              b.apply(attention_grad, {b.gradient("o"), b["q"], b["k"], b["v"], b["o"], b["lse"]});
          b.give("q", dq);
          b.give("k", result(dq, 1));
          b.give("v", result(dq, 2));
        },
    .flops = [](const op_sizes& s) { return 4 * s("tokens") * s("heads") * s("dim") * s("seq"); },
    .host = {"attention", "rows seq heads kv_heads dim", host_scores<false>},
    .cuda = {"attention", "rows seq heads kv_heads dim q_stride kv_stride",
             [](const op_sizes& s, const kernel_setting& k) {
               return cuda::attention_scratch(attention_shape(s, k));
             }},
    .family = op_family::attention,
    .of_chunks = &chunk_attention};

}  // namespace ops

/// Rotary positions. Source: Su et al. 2021.
constexpr value rope(operand x, int seq, double theta, const rope_scaling& scaling = {}) {
  return x.v.in->apply(ops::rope, {x.v}, x.from, {.with = {.seq = seq, .number = theta, .scaling = scaling}});
}
/// Learned positions: row n % seq of the table is added to row n. Shapes: x (tokens, width), table (seq,
/// width).
constexpr value position(operand x, value table, int seq) {
  return table.in->apply(ops::position, {x.v, table}, x.from, {.with = {.seq = seq}});
}
/// Causal attention of each sequence, with grouped key-value heads.
/// Shapes: q (tokens, heads), k and v (tokens, kv_heads), in heads of one size; tokens = rows * seq.
constexpr value attention(operand q, value k, value v, int rows, int seq) {
  return k.in->apply(ops::attention, {q.v, k, v}, q.from, {.with = {.rows = rows, .seq = seq}});
}

}  // namespace rankc
