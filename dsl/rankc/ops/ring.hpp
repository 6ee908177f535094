// SPDX-License-Identifier: Apache-2.0
// Ring attention: the ranks of a ring hand their keys and values on, and each adds to its queries' result
// what they make of the keys that it has, a rank's at a time. Each part is a softmax over its own keys with
// its log-sum-exp; two become one by these, in the order of steps: own keys, then those of the rank before,
// and so on. Backward makes each part's scores again from the log-sum-exp of all, hands keys and values round
// the other way, and their gradients back along with them.
// Source: ring attention (Liu et al. 2023), with zig-zag chunks (Zhu 2024); step rule as in Megatron-LM.
#pragma once
#include <rankc/ops/attention.hpp>
#include <rankc/ops/conversions.hpp>

namespace rankc {

namespace placement_rules {
/// Complain of rows that have not come as many ranks as a step takes them from.
constexpr void check_passed(complaint& c, std::string_view who, const type& x, double step) {
  if (x.shape[0].passed != static_cast<int>(step) && !c.said)
    c.begin() << who << " has come " << x.shape[0].passed << " ranks around the ring; expected "
              << static_cast<int>(step) << " at this step";
}
/// A part of attention: of a rank's queries, to the keys that have come as many ranks as the step says.
constexpr void ring_attention(complaint& c, types in, type* out, const op& o) {
  constexpr std::string_view who[]{"q", "k", "v"};
  for (int i = 0; i < 3; ++i)
    if (!rows(c, who[i], in[i])) return;
  out[0] = out[1] = in[0];
  out[1].shape[1] = dim{in[0].shape[1].name, in[0].shape[1].count()};
  out[1].holds = element::wide;
  for (axis a : axes)
    for (int i = 0; i < 3; ++i) {
      if (in[i][a] == P) c.found(a, who[i], in[i], any_but_pending, reduce_first);
      else if (a == axis::cp && in[i][a] != V(0) && in[i][a] != heads_in_ring)
        c.found(a, who[i], in[i], "sharded along the tokens (V)",
                "a ring hands on the shards of its ranks: do not gather it");
      else if (in[i][a] != in[0][a]) c.found(a, who[i], in[i], "q's placement", "convert it as q is");
      else if (a == axis::tp) whole_sequences(c, who[i], in[i]);
    }
  check_passed(c, "q", in[0], 0);
  check_passed(c, "k", in[1], o.with.number);
  check_passed(c, "v", in[2], o.with.number);
  heads_of_attention(c, in);
}
constexpr void ring_attention_gradient(complaint& c, types in, type* out, const op& o) {
  attention_gradient(c, in, out, o);
  check_passed(c, "q", in[1], 0);
  check_passed(c, "k", in[2], o.with.number);
  check_passed(c, "v", in[3], o.with.number);
}
/// Two parts of one result.
constexpr void merge_attention(complaint& c, types in, type* out, const op&) {
  out[0] = in[0];
  out[1] = in[1];
  for (int i = 0; i < 2 && !c.said; ++i)
    if (in[i] != in[i + 2]) {
      complaint::put_shape(c.begin() << "one part is ", in[i]);
      complaint::put_shape(c.text << " and the other ", in[i + 2]);
      c.text << "; expected two parts of one attention, of one placement";
    }
}
}  // namespace placement_rules

namespace detail {
/// What all parts make together, of which `part` is one: the result, or its log-sum-exp, of the last of the
/// merges.
constexpr value_pair whole_of(trace& t, const op_row& merge, int part) {
  int result = part, sums = part + 1;
  for (std::size_t i = 0; i < t.forward_ops; ++i) {
    const op& o = t.ops[i];
    if (o.kind != &merge || (o.in[0] != result && o.in[2] != result)) continue;
    result = o.out[0];
    sums = o.out[1];
  }
  return {{&t, result}, {&t, sums}};
}
/// Keys and values as backward has them: on their way round from the rank's own, the other way.
constexpr value_pair handed_back(trace& t, value_pair kv, int ring) {
  int steps = 0;
  for (std::size_t i = t.forward_ops; i-- > 0;)
    if (const op& o = t.ops[i]; o.kind == &ops::shift && o.out[0] == kv.first.id) {
      kv = {{&t, o.in[0]}, {&t, o.in[1]}};
      ++steps;
    }
  for (int n = steps; steps > 0 && n < ring; ++n) {
    const op* known = nullptr;
    for (std::size_t i = t.forward_ops; i < t.ops.size(); ++i)
      if (t.ops[i].kind == &ops::shift_back && t.ops[i].in[0] == kv.first.id) known = &t.ops[i];
    kv = known ? value_pair{{&t, known->out[0]}, {&t, known->out[1]}}
               : rankc::shift_back({kv.first, "", 0}, kv.second, axis::cp, ring);
  }
  return kv;
}
}  // namespace detail

template <bool Gradient>
constexpr std::size_t host_ring_scores(const op_sizes& s, const kernel_setting& k) {
  return ops::host_scores_with<Gradient>(s, k, s("tokens") / s("rows"));
}

namespace ops {

inline constexpr op_row merge_attention{
    .name = "merge_attention",
    .ports = {out("o", "tokens heads*dim").over("o_before"),
              out("lse", "tokens heads").over("lse_before").wide(), in("o_before", "tokens heads*dim"),
              in("lse_before", "tokens heads").wide(), in("o_more", "tokens heads*dim"),
              in("lse_more", "tokens heads").wide()},
    .rule = placement_rules::merge_attention,
    .dual =
        [](backward& b) {  // of the whole, which each part is given
          b.give("o_before", b.gradient("o"));
          b.give("o_more", b.gradient("o"));
        },
    .flops = no_flops,
    .host = {"merge_attention", "rows tokens heads dim"},
    .cuda = {"merge_attention", "rows tokens heads dim"},
    .family = op_family::attention,
    .of_rings = true};

inline constexpr op_row ring_attention_grad{
    .name = "ring_attention_grad",
    .ports = {out("dq", "tokens@first heads*dim"), out("dk", "keys kv_heads*dim"),
              out("dv", "keys kv_heads*dim"), scratch("scratch"), in("d_o", "tokens heads*dim"),
              in("q", "tokens@first heads*dim"), in("k", "keys kv_heads*dim"), in("v", "keys kv_heads*dim"),
              in("o", "tokens heads*dim"), in("lse", "tokens heads").wide()},
    .rule = placement_rules::ring_attention_gradient,
    .flops =
        [](const op_sizes& s) { return 10 * s("tokens") * s("heads") * s("dim") * s("seq") / s("ring"); },
    .host = {"ring_attention_grad", "rows seq heads kv_heads dim ring number first", host_ring_scores<true>},
    .cuda = {"ring_attention_grad", "rows seq heads kv_heads dim ring number first",
             [](const op_sizes& s, const kernel_setting& k) {
               return cuda::attention_grad_scratch(chunk_shape(s, k));
             }},
    .number = "step",
    .of_rings = true};
/// The gradient of a part is taken with the result and the log-sum-exp of all.
inline constexpr op_row ring_attention{
    .name = "ring_attention",
    .ports = {out("o", "tokens heads*dim"), out("lse", "tokens heads").wide(), scratch("scratch"),
              in("q", "tokens@first heads*dim"), in("k", "keys kv_heads*dim"), in("v", "keys kv_heads*dim")},
    .rule = placement_rules::ring_attention,
    .dual =
        [](backward& b) {
          const value_pair whole = detail::whole_of(b.t, merge_attention, b["o"].id);
          const value_pair kv = detail::handed_back(b.t, {b["k"], b["v"]}, b.of.with.ring);
          const value dq = b.apply(ring_attention_grad,
                                   {b.gradient("o"), b["q"], kv.first, kv.second, whole.first, whole.second});
          b.give("q", dq);
          b.give("k", result(dq, 1));
          b.give("v", result(dq, 2));
        },
    .flops = [](const op_sizes& s) { return 4 * s("tokens") * s("heads") * s("dim") * s("seq") / s("ring"); },
    .host = {"ring_attention", "rows seq heads kv_heads dim ring number first", host_ring_scores<false>},
    .cuda = {"ring_attention", "rows seq heads kv_heads dim ring number first",
             [](const op_sizes& s, const kernel_setting& k) {
               return cuda::attention_scratch(chunk_shape(s, k));
             }},
    .family = op_family::attention,
    .number = "step",
    .of_rings = true};

}  // namespace ops

namespace detail {
/// All parts of attention around a ring, each made by `part` of the keys and values that have come, as one.
constexpr value around_ring(operand q, value_pair kv, attributes with, auto part) {
  trace& t = *q.v.in;
  value_pair whole{};
  for (int step = 0; step < with.ring; ++step) {
    if (step > 0) kv = shift({kv.first, q.from.file, q.from.line}, kv.second, axis::cp, with.ring);
    with.number = step;
    const value made = part(kv, with);
    if (step == 0) {
      whole = {made, result(made, 1)};
      continue;
    }
    const value merged = t.apply(ops::merge_attention, {whole.first, whole.second, made, result(made, 1)},
                                 q.from, {.with = {.rows = with.rows, .seq = with.seq, .ring = with.ring}});
    whole = {merged, result(merged, 1)};
  }
  return whole.first;
}
}  // namespace detail

/// Causal attention of a rank's chunks of each sequence to those of all ranks of a ring; of a ring of groups,
/// a group's.
/// Shapes: q (tokens, heads), k and v (tokens, kv_heads), in heads of one size, all three sharded along the
/// tokens over cp, or along heads in its groups and along the tokens over these.
constexpr value ring_attention(operand q, value k, value v, int rows, int seq, int ring) {
  return detail::around_ring(
      q, {k, v}, {.rows = rows, .seq = seq, .ring = ring}, [&](value_pair kv, const attributes& with) {
        return k.in->apply(ops::ring_attention, {q.v, kv.first, kv.second}, q.from, {.with = with});
      });
}

}  // namespace rankc
