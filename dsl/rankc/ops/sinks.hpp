// SPDX-License-Identifier: Apache-2.0
// Attention sinks. A sink is one learned score for each head. It enters the sum of every softmax of its head
// and has no value. `add_sinks` changes the output and the log-sum-exp of any attention: whole, in chunks, of
// a merged ring, or within documents. The gradients of q, k and v are then computed from the changed results
// by the same ops as without sinks.
// Source: gpt-oss (OpenAI 2025); transformers, models/gpt_oss.
#pragma once
#include <rankc/ops/linear.hpp>
#include <rankc/ops/ring.hpp>

namespace rankc {

namespace placement_rules {
/// Every query gets the scores of its heads. The sinks are sharded as the heads of x are.
constexpr void sink_scores(complaint& c, types in, type* out, const op&) {
  const type &x = in[0], &sinks = in[1];
  if (!rows(c, "the value", x)) return;
  out[0] = x;
  out[0].shape[1] = dim{x.shape[1].name, x.shape[1].count()};
  for (axis a : axes) {
    if (x[a] == P) c.found(a, "the value", x, any_but_pending, reduce_first);
    else if ((x[a] == V(1)) != (sinks[a] == V(0)))
      c.found(a, "the value", x, "the sharding of the sinks", "shard both along the same heads");
  }
  if (c.said || (sinks.ndim == 1 && sinks.shape[0] == out[0].shape[1])) return;
  complaint::put_shape(c.begin() << "the sinks are ", sinks);
  c.text << "; expected one number for each head, (" << out[0].shape[1].name << "=" << out[0].shape[1].size
         << ")";
}
constexpr void add_sinks(complaint& c, types in, type* out, const op&) {
  const type &o = in[0], &scores = in[2];
  out[0] = o;
  out[1] = in[1];
  for (axis a : axes)
    if (scores[a] != o[a])
      c.found(a, "scores", scores, "the placement of attention's result", "convert them as q is converted");
}
constexpr void add_sinks_gradient(complaint& c, types in, type* out, const op&) {
  for (axis a : axes) out[0][a] = linear_in(c, a, in[0], in.subspan(1));
}
}  // namespace placement_rules

namespace ops {

/// The scores of the sinks as rows of tokens, so that an exchange of heads can move them. x gives the
/// number of tokens.
inline constexpr op_row sink_scores{
    .name = "sink_scores",
    .ports = {out("scores", "tokens heads"), in("x", "tokens heads*dim"), parameter("sinks", "heads")},
    .rule = placement_rules::sink_scores,
    .dual = [](backward& b) { b.contribute({"sinks"}, bias_grad, {b.gradient("scores")}); },
    .sizes = "tokens heads dim",
    .family = op_family::attention};

inline constexpr op_row add_sinks_grad{
    .name = "add_sinks_grad",
    .ports = {out("dscores", "tokens heads"), in("d_o", "tokens heads*dim"), in("o", "tokens heads*dim"),
              in("lse", "tokens heads").wide(), in("scores", "tokens heads")},
    .rule = placement_rules::add_sinks_gradient,
    .sizes = "rows tokens heads dim",
    .of_rings = true};
/// The gradient of `o` passes through, because attention computes its gradients from the changed results.
inline constexpr op_row add_sinks{
    .name = "add_sinks",
    .ports = {out("o", "tokens heads*dim").over("o_before"),
              out("lse", "tokens heads").over("lse_before").wide(), in("o_before", "tokens heads*dim"),
              in("lse_before", "tokens heads").wide(), in("scores", "tokens heads")},
    .rule = placement_rules::add_sinks,
    .dual =
        [](backward& b) {
          b.give("o_before", b.gradient("o"));
          b.give("scores", b.apply(add_sinks_grad, {b.gradient("o"), b["o"], b["lse"], b["scores"]}));
        },
    .sizes = "rows tokens heads dim",
    .family = op_family::attention,
    .of_rings = true};

/// Attention and add_sinks as one op of a model. Programs have the two ops, so it has no kernel.
inline constexpr op_row sink_attention{
    .name = "sink_attention",
    .ports = {out("o", "tokens heads*value_dim"), out("lse", "tokens heads").wide(),
              in("q", "tokens heads*dim"), in("k", "tokens kv_heads*dim"),
              in("v", "tokens kv_heads*value_dim"), in("scores", "tokens heads")}};
inline constexpr op_row document_sink_attention = [] {
  op_row row = sink_attention;
  row.name = "document_sink_attention";
  row.ports[row.count_ports()] = in("starts", "places").index();
  return row;
}();

}  // namespace ops

namespace detail {
/// The op that adds sinks to the result of attention; nullptr if there is none.
constexpr const op* find_sinks(const trace& t, int result) {
  for (std::size_t i = 0; i < t.forward_ops; ++i)
    if (t.ops[i].kind == &ops::add_sinks && t.ops[i].in[0] == result) return &t.ops[i];
  return nullptr;
}
/// The results from which attention computes its gradients: those with sinks, if it has sinks.
/// Errors: RC210 if another op reads attention's result without the sinks.
constexpr value_pair with_sinks(trace& t, value_pair whole) {
  const op* const sinks = find_sinks(t, whole.first.id);
  if (!sinks) return whole;
  for (std::size_t i = 0; i < t.forward_ops; ++i)
    for (const int read : t.ops[i].in) {
      if (read != whole.first.id || &t.ops[i] == sinks) continue;
      complaint c{"add_sinks", {}, t.ops[i].from};
      c.begin() << t.ops[i].kind->name << " reads the result of attention without its sinks; expected that "
                << "add_sinks alone reads it";
      t.refuse(c);
    }
  return {{&t, sinks->out[0]}, {&t, sinks->out[1]}};
}
/// The attention op, or the merge of a ring, that computes a value; nullptr if there is none.
constexpr const op* find_attention_of(const trace& t, int result) {
  for (const op& o : t.ops)
    if (o.out[0] == result && o.kind->family == op_family::attention && o.kind->find("lse") >= 0 &&
        o.kind != &ops::add_sinks)
      return &o;
  return nullptr;
}
}  // namespace detail

/// The score of its sink for each query and head, as rows of x's tokens.
/// Shapes: x (tokens, heads), sinks (number of heads); result (tokens, number of heads).
/// Errors: RC210.
constexpr value sink_scores(operand x, value sinks) {
  return sinks.in->apply(ops::sink_scores, {x.v, sinks}, x.from);
}
/// Adds sinks to attention: lse' = log(exp(lse) + exp(score)) and o' = o exp(lse - lse').
/// Shapes: o (tokens, heads), the result of attention or ring_attention; scores (tokens, number of heads).
/// Errors: RC210; also if another op reads o.
constexpr value add_sinks(operand o, value scores) {
  trace& t = *o.v.in;
  const op* const made = detail::find_attention_of(t, o.v.id);
  if (!made && !t.of(o.v).bad) {
    complaint c{"add_sinks", {}, o.from};
    c.begin() << "the value is not a result of attention; expected that of attention or ring_attention";
    t.refuse(c);
  }
  if (!made) return o.v;
  const attributes& of = made->with;
  return t.apply(ops::add_sinks, {o.v, result(o.v, 1), scores}, o.from,
                 {.with = {.rows = of.rows, .seq = of.seq, .ring = of.ring}});
}

}  // namespace rankc
