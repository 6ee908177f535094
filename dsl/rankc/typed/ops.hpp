// SPDX-License-Identifier: Apache-2.0
// The local ops that layers are written in. Each is a rule and a dual; the dual appends backward ops, which are
// typed like any other. An op's name is also the name of its kernel in the runtime.
#pragma once
#include <rankc/typed/conversions.hpp>

namespace rankc {

namespace ops {

using namespace rules;

constexpr op on(weight w) {
  op o;
  o.weight[0] = w.id;
  return o;
}
constexpr op on(int w0, int w1, attributes with = {}) {
  op o;
  o.weight[0] = w0;
  o.weight[1] = w1;
  o.with = with;
  return o;
}
constexpr op with(attributes a) { return on(-1, -1, a); }

// ---- elementwise
inline constexpr op_def add{"add", [](trace& t, const op& o, value g) {
                              t.give_gradient(o.in[0], g);
                              t.give_gradient(o.in[1], g);
                            }};
inline constexpr op_def gelu_grad{"gelu_grad"};
inline constexpr op_def gelu{"gelu", [](trace& t, const op& o, value g) {
                               t.give_gradient(o.in[0], t.apply(gelu_grad, {{&t, o.in[0]}, g}, {}, gradient_of_elementwise));
                             }};
inline constexpr op_def swiglu_grad{"swiglu_grad"};
inline constexpr op_def swiglu{"swiglu", [](trace& t, const op& o, value g) {
                                 t.apply<2>(swiglu_grad, {{&t, o.in[0]}, {&t, o.in[1]}, g}, {},
                                            [](complaint& c, types in, type* out) {
                                              gradient_of_elementwise(c, in, out);
                                              out[1] = out[0];
                                            });
                                 const op made = t.ops.back();
                                 for (int i : {0, 1}) t.give_gradient(o.in[i], {&t, made.out[i]});
                               }};

// ---- linear, bias
inline constexpr op_def linear_dx{"linear_dx"}, linear_dw{"linear_dw"};
inline constexpr op_def linear{
    "linear", [](trace& t, const op& o, value g) {
      const type w = t.weights[o.weight[0]].holds;
      t.give_gradient(o.in[0], t.apply(linear_dx, {g}, {},
                                       [&](complaint& c, types in, type* out) { out[0] = rules::linear(c, in[0], w, 0); },
                                       on(o.weight[0], -1)));
      t.contribute(linear_dw, {g, {&t, o.in[0]}},
                   [](complaint& c, types in, const type&, axis a) { return outer(c, in[1], in[0], a); },
                   on(o.weight[0], -1));
    }};
constexpr placement token_sum(complaint&, types in, const type&, axis a) { return over_tokens(in[0], a); }
inline constexpr op_def bias_grad{"bias_grad"};
inline constexpr op_def bias{"bias", [](trace& t, const op& o, value g) {
                               t.give_gradient(o.in[0], g);
                               t.contribute(bias_grad, {g}, token_sum, on(o.weight[0], -1));
                             }};

// ---- normalisation: results are y and the row statistics that backward needs
constexpr void norm_gradient(complaint& c, types in, type* out) {  // dy, x, statistics
  out[0] = in[0];
  for (axis a : axes) out[0][a] = linear_in(c, a, in[0], in.subspan(1));
}
template <const op_def& Dx, const op_def& Dw>
constexpr void norm_dual(trace& t, const op& o, value g) {
  const value x{&t, o.in[0]}, statistics{&t, o.out[1]};
  t.give_gradient(o.in[0], t.apply(Dx, {g, x, statistics}, {}, norm_gradient, on(o.weight[0], -1)));
  t.contribute(Dw, {g, x, statistics}, token_sum, on(o.weight[0], o.weight[1]));
}
inline constexpr op_def layer_norm_dx{"layer_norm_dx"}, layer_norm_dw{"layer_norm_dw"};
inline constexpr op_def layer_norm{"layer_norm", norm_dual<layer_norm_dx, layer_norm_dw>};
inline constexpr op_def rms_norm_dx{"rms_norm_dx"}, rms_norm_dw{"rms_norm_dw"};
inline constexpr op_def rms_norm{"rms_norm", norm_dual<rms_norm_dx, rms_norm_dw>};

// ---- positions and attention
inline constexpr op_def rope_grad{"rope_grad"};
inline constexpr op_def rope{"rope", [](trace& t, const op& o, value g) {
                               t.give_gradient(o.in[0], t.apply(rope_grad, {g}, {}, elementwise(true), ops::with(o.with)));
                             }};
inline constexpr op_def position_grad{"position_grad"};
inline constexpr op_def position{"position", [](trace& t, const op& o, value g) {
                                   t.give_gradient(o.in[0], g);
                                   t.contribute(position_grad, {g}, [](complaint&, types in, const type&, axis a) {
                                     return in[0][a].k == placement::V ? P : in[0][a];
                                   }, on(o.weight[0], -1, o.with));
                                 }};
inline constexpr op_def attention_grad{"attention_grad"};
inline constexpr op_def attention{
    "attention", [](trace& t, const op& o, value g) {
      t.apply<3>(attention_grad, {{&t, o.in[0]}, {&t, o.in[1]}, {&t, o.in[2]}, {&t, o.out[0]}, {&t, o.out[1]}, g}, {},
                 attention_gradient, ops::with(o.with));
      const op made = t.ops.back();
      for (int i : {0, 1, 2}) t.give_gradient(o.in[i], {&t, made.out[i]});
    }};

// ---- embedding and loss
inline constexpr op_def embedding_grad{"embedding_grad"};
inline constexpr op_def embedding{"embedding", [](trace& t, const op& o, value g) {
                                    t.contribute(embedding_grad, {g, {&t, o.in[0]}},
                                                 [](complaint& c, types in, const type& table, axis a) {
                                                   return embedding_gradient(c, in[0], table, a);
                                                 },
                                                 on(o.weight[0], -1));
                                  }};
inline constexpr op_def row_max{"row_max"};
inline constexpr op_def exp_sums_grad{"exp_sums_grad"};
inline constexpr op_def exp_sums{
    "exp_sums", [](trace& t, const op& o, value g) {  // inputs: logits, top, targets
      t.give_gradient(o.in[0], t.apply(exp_sums_grad, {g, {&t, o.in[0]}, {&t, o.in[1]}, {&t, o.in[2]}}, {},
                                       [](complaint& c, types in, type* out) {
                                         out[0] = in[1];
                                         for (axis a : axes)
                                           if (in[1][a] == V(1) && in[0][a] != R)
                                             c.found(a, "the gradient", in[0], "replicated (R)", "check the op's dual");
                                       }));
    }};
inline constexpr op_def cross_entropy_grad{"cross_entropy_grad"};
inline constexpr op_def cross_entropy{"cross_entropy", [](trace& t, const op& o, value) {
                                        t.give_gradient(o.in[0], t.apply(cross_entropy_grad, {{&t, o.in[0]}}, {},
                                                                         elementwise(false), ops::with(o.with)));
                                      }};

/// All that layers and their backward are made of. Each has a kernel, or is a change of placement.
inline constexpr const op_def* all[]{
    &replicate, &all_reduce, &all_reduce_max, &all_gather, &reduce_scatter, &add, &gelu, &gelu_grad, &swiglu, &swiglu_grad, &linear,
    &linear_dx, &linear_dw, &bias, &bias_grad, &layer_norm, &layer_norm_dx, &layer_norm_dw, &rms_norm, &rms_norm_dx, &rms_norm_dw,
    &rope, &rope_grad, &position, &position_grad, &attention, &attention_grad, &embedding, &embedding_grad, &row_max, &exp_sums,
    &exp_sums_grad, &cross_entropy, &cross_entropy_grad};
constexpr bool has_kernel(const op_def* kind) {
  for (const op_def* known : all)
    if (known == kind) return true;
  return false;
}
constexpr bool is_conversion(const op_def* kind) { return kind->communicates || kind == &replicate; }

}  // namespace ops

// ---- what a layer writes

/// a + b, elementwise.
constexpr value operator+(operand a, value b) { return b.in->apply(ops::add, {a.v, b}, a.from, rules::sum); }

/// GELU, tanh form; SwiGLU: silu(gate) * up.
constexpr value gelu(operand x) { return x.v.in->apply(ops::gelu, {x.v}, x.from, rules::elementwise(false)); }
constexpr value swiglu(operand gate, value up) {
  return up.in->apply(ops::swiglu, {gate.v, up}, gate.from, [](complaint& c, types in, type* out) {
    rules::sum(c, in, out);
    for (axis a : axes)
      if (in[0][a] == P) c.found(a, "gate", in[0], rules::any_but_pending, rules::reduce_first);
  });
}

/// x w^T. Shapes: x (tokens, in), w (out, in).
constexpr value linear(operand x, weight w) {
  return w.in->apply(ops::linear, {x.v}, x.from,
                     [&](complaint& c, types in, type* out) { out[0] = rules::linear(c, in[0], w.in->weights[w.id].holds); },
                     ops::on(w));
}
constexpr value bias(operand x, weight b) {
  return b.in->apply(ops::bias, {x.v}, x.from,
                     [&](complaint& c, types in, type* out) { rules::bias(c, in, b.in->weights[b.id].holds, out); },
                     ops::on(b));
}
constexpr value layer_norm(operand x, weight gain, weight shift) {
  if (gain.id == shift.id) {
    complaint c{"layer_norm", gain.in->weights[gain.id].name, x.from};
    c.begin() << "it is the gain and the shift; expected two parameters";
    gain.in->refuse(c);
  }
  const type weights[]{gain.in->weights[gain.id].holds, shift.in->weights[shift.id].holds};
  return gain.in->apply<2>(ops::layer_norm, {x.v}, x.from,
                           [&](complaint& c, types in, type* out) { rules::norm(c, in, weights, out); },
                           ops::on(gain.id, shift.id));
}
constexpr value rms_norm(operand x, weight gain) {
  const type weights[]{gain.in->weights[gain.id].holds};
  return gain.in->apply<2>(ops::rms_norm, {x.v}, x.from,
                           [&](complaint& c, types in, type* out) { rules::norm(c, in, weights, out); }, ops::on(gain));
}

/// Rotary positions; learned positions; causal attention with grouped key-value heads.
constexpr value rope(operand x, int seq, double theta) {
  return x.v.in->apply(ops::rope, {x.v}, x.from, rules::rope, ops::with({.seq = seq, .number = theta}));
}
constexpr value position(operand x, weight table, int seq) {
  return table.in->apply(ops::position, {x.v}, x.from,
                         [&](complaint& c, types in, type* out) {
                           rules::position(c, in, table.in->weights[table.id].holds, seq, out);
                         },
                         ops::on(table.id, -1, {.seq = seq}));
}
constexpr value attention(operand q, value k, value v, int rows, int seq) {
  return k.in->apply<2>(ops::attention, {q.v, k, v}, q.from, rules::attention, ops::with({.rows = rows, .seq = seq}));
}

/// Rows of a table. Shapes: ids (tokens), table (vocab, width).
constexpr value embedding(operand ids, weight table) {
  return table.in->apply(ops::embedding, {ids.v}, ids.from,
                         [&](complaint& c, types in, type* out) {
                           rules::embedding(c, in, table.in->weights[table.id].holds, out);
                         },
                         ops::on(table));
}

/// Mean cross entropy of logits whose vocabulary may be sharded over `over`; `scale` is 1 / tokens of the step.
/// Shapes: logits (tokens, vocab), targets (tokens).
/// Source: Megatron-LM (Shoeybi et al. 2019), vocab-parallel cross entropy.
constexpr value cross_entropy(operand logits, value targets, axis over, double scale) {
  trace& t = *targets.in;
  value top = t.apply(ops::row_max, {logits.v}, logits.from, [&](complaint& c, types in, type* out) {
    rules::logits(c, in[0], t.of(targets), over);
    out[0] = in[0];
    out[0].shape[1] = dim{"top", 1};
    out[0].holds = element::wide;
    for (axis a : axes)
      if (in[0][a] == V(1)) out[0][a] = P;
    out[0].pending_max = out[0][over] == P;
  });
  if (t.of(top)[over] == P) top = all_reduce_max(top, over);
  value sums = t.apply(ops::exp_sums, {logits.v, top, targets}, logits.from, [&](complaint&, types in, type* out) {
    out[0] = in[1];
    out[0].shape[1] = dim{"sums", 2};
    for (axis a : axes)
      if (in[0][a] == V(1)) out[0][a] = P;
  });
  if (t.of(sums)[over] == P) sums = all_reduce(sums, over);
  return t.apply(ops::cross_entropy, {sums}, logits.from,
                 [](complaint&, types in, type* out) {
                   out[0] = in[0];
                   out[0].ndim = 0;
                   out[0].shape[0] = out[0].shape[1] = {};
                   for (axis a : axes)
                     if (in[0][a] == V(0)) out[0][a] = P;
                 },
                 ops::with({.number = scale}));
}

// ---- backward: the reverse walk

constexpr void trace::give_gradient(int id, value g) {
  if (of(g).bad || values[id].bad || values[id].holds == element::index) return;
  if (of(g) != cotangent(values[id]) && said.empty()) {
    complaint c{"backward", {}, backward_of};
    sentence& s = c.begin();
    s << "a gradient has the wrong placement";
    for (axis a : axes)
      if (of(g)[a] != cotangent(values[id][a])) {
        s << ": over " << name(a) << " it is ";
        complaint::put(s, of(g), of(g)[a]);
        s << " for a value that is ";
        complaint::put(s, values[id], values[id][a]);
      }
    refuse(c);
  }
  gradients[id] = gradients[id] < 0 ? g.id : apply(ops::add, {gradient_of(id), g}, {}, rules::sum).id;
}

constexpr void trace::derive_backward(value root) {
  forward_ops = ops.size();
  result = root.id;
  if (!said.empty()) return;
  gradients.assign(values.size(), -1);
  gradients[root.id] = result_gradient = add(cotangent(of(root))).id;
  for (std::size_t i = forward_ops; i-- > 0;) {
    const op o = ops[i];
    backward_of = o.from;
    if (gradients[o.out[0]] < 0) continue;
    if (o.kind->dual) {
      o.kind->dual(*this, o, gradient_of(o.out[0]));
      continue;
    }
    complaint c{o.kind->name, {}, o.from};
    c.begin() << "a gradient reaches it, and it has no dual; give its op_def one, or stop_gradient where none flows";
    return refuse(c);
  }
  for (const weight_info& w : weights) {
    if (w.has_gradient) continue;
    complaint c{"parameter", w.name, w.from};
    c.begin() << "nothing that it makes reaches the layer's result, so that it has no gradient; use it, or leave it out";
    refuse(c);
  }
}

}  // namespace rankc
