// SPDX-License-Identifier: Apache-2.0
// Layers and models that a user may write and no other test has: a weight used twice, two rotary bases, dims
// and layers with equal names, layers without parameters, names that are no identifiers.
#pragma once
#include <rankc/rankc.hpp>

#include "silu.hpp"
#include "square_loss.hpp"

namespace odd {

using namespace rankc;
using context = layer_context;

inline constexpr dim hidden{"hidden", 12}, vocab{"vocab", 32}, ffn{"ffn", 20}, narrow_ffn{"ffn", 16},
    heads{"heads", 12, 6, "head_dim"}, wide_heads{"heads", 24, 12, "head_dim"};

constexpr value gain(trace& t, std::string_view name = "g") {
  return t.parameter(name, {hidden}, {}, initial::ones);
}
constexpr value up(trace& t, value x, std::string_view name, dim out) {
  return linear(x, t.parameter(name, {out, hidden}, {{axis::tp, out.name}}, initial::normal, 0.3));
}
constexpr value down(trace& t, value x, std::string_view name, dim in) {
  return linear(x, t.parameter(name, {hidden, in}, {{axis::tp, in.name}}, initial::normal, 0.3));
}

/// Attention within `parts` pieces of each sequence.
constexpr value attend(value q, value k, value v, const context& c, int parts = 1) {
  value keys = all_gather(k, axis::cp, c.tokens.name);
  value values = all_gather(v, axis::cp, c.tokens.name);
  return attention(q, keys, values, parts * c.rows, c.seq / parts);
}

/// A model with these layers alone.
template <class Stack>
struct model {
  Stack layers;
  int vocab = 32, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const { return layers; }
};
constexpr auto make_bare(auto... layers) {
  const auto all = sequential(layers...);
  return model<std::remove_const_t<decltype(all)>>{all};
}
/// The table of every embedding here, and of layers that share it.
inline constexpr parameter_handle table = token_table(vocab, hidden);
/// An embedding, the layers, and a head tied to the embedding.
constexpr auto make(auto... layers) {
  return make_bare(models::embedding{table, true}, layers...,
                   models::head{.table = table, .norm = models::norm_kind::layer});
}

/// One gain for two norms.
struct norm_twice {
  static constexpr std::string_view name = "norm_twice";
  constexpr value forward(trace& t, value x, const context&) const {
    value g = gain(t);
    return x + rms_norm(gelu(rms_norm(x, g)), g);
  }
};

/// A user's op.
struct silu_mlp {
  static constexpr std::string_view name = "silu_mlp";
  constexpr value forward(trace& t, value x, const context& c) const {
    value h = enter_tp(rms_norm(x, gain(t)), c);
    return x + leave_tp(down(t, user::silu(up(t, h, "u", ffn)), "d", ffn), c);
  }
};

/// Multiplies values of each placement: a pending sum by a replicated value, sharded values, and a value by
/// itself.
struct products {
  static constexpr std::string_view name = "products";
  constexpr value forward(trace& t, value x, const context& c) const {
    value n = rms_norm(x, gain(t));
    value h = enter_tp(n, c);
    value gate = sigmoid(up(t, h, "gate", ffn));
    value pending = down(t, up(t, h, "u", ffn) * gate, "d", ffn);
    value factor = sigmoid(linear(h, t.parameter("factor", {hidden, hidden}, {}, initial::normal, 0.3)));
    value y = leave_tp(scale(factor * pending + pending * factor, -0.7), c);
    return x + y * y + scale(y * n, 0.1);
  }
};

/// One gain for the heads of queries and keys, another for the attention's output; there are fewer keys than
/// queries.
struct head_norms {
  static constexpr std::string_view name = "head_norms";
  constexpr value forward(trace& t, value x, const context& c) const {
    const dim all{"heads", 24, 6, "head_dim"};
    value h = enter_tp(rms_norm(x, gain(t)), c);
    value g = t.parameter("head_gain", {dim{"head_dim", 6}}, {}, initial::ones);
    value q = head_norm(up(t, h, "q", all), g), k = head_norm(up(t, h, "k", heads), g),
          v = up(t, h, "v", heads);
    value g_out = t.parameter("out_gain", {dim{"head_dim", 6}}, {}, initial::ones);
    return x + leave_tp(down(t, head_norm(attend(q, k, v, c), g_out), "o", all), c);
  }
};

/// Softmax of whole rows, as a gate.
struct softmax_gate {
  static constexpr std::string_view name = "softmax_gate";
  constexpr value forward(trace& t, value x, const context&) const {
    value h = rms_norm(x, gain(t));
    value part = softmax(linear(h, t.parameter("w", {hidden, hidden}, {}, initial::normal, 0.3)));
    return x + linear(part * h, t.parameter("v", {hidden, hidden}, {}, initial::normal, 0.3));
  }
};

/// Rows and heads are split and concatenated in another order; of each, one part is not used at all.
struct parts {
  static constexpr std::string_view name = "parts";
  constexpr value forward(trace& t, value x, const context& c) const {
    const dim left{"left", 5}, right{"right", 7}, both{"both", 24}, in{"in", 12};
    const dim all{"all", 20, 10, "all_dim"}, turned{"turned", 8, 4, "turned_dim"},
        plain{"plain", 12, 6, "plain_dim"}, swapped{"swapped", 20, 10, "all_dim"};
    value h = enter_tp(rms_norm(x, gain(t)), c);
    const auto [a, b] = split(up(t, h, "u", all), turned, plain);
    const auto [unused, d] = split(up(t, h, "v", all), turned, plain);
    value y = gelu(concat(b, rope(a, c.seq, 10), swapped));
    value sums = concat(down(t, y, "y", swapped), down(t, d, "z", plain), both);
    const auto [e, f] = split(leave_tp(sums, c), hidden, in);
    const auto [first, second] = split(e, left, right);
    const auto [kept, also_unused] = split(f, right, left);
    (void)unused;
    (void)also_unused;
    value z = concat(second * kept, first, dim{"hidden", 12});
    return x + z;
  }
};

/// GEMMs with one input; between two of them whose weights are adjacent is another weight's.
struct parted_products {
  static constexpr std::string_view name = "parted_products";
  constexpr value forward(trace& t, value x, const context& c) const {
    const auto weight = [&](std::string_view of) {
      return t.parameter(of, {ffn, hidden}, {{axis::tp, "ffn"}}, initial::normal, 0.3);
    };
    value h = enter_tp(rms_norm(x, gain(t)), c);
    value first = weight("first"), second = weight("second");
    value a = gelu(linear(h, first));
    value b = linear(h, weight("between"));
    return x + leave_tp(down(t, a + swiglu(b, linear(h, second)), "d", ffn), c);
  }
};

/// One gain with two shifts, and a matrix used three times.
struct matrix_thrice {
  static constexpr std::string_view name = "matrix_thrice";
  constexpr value forward(trace& t, value x, const context&) const {
    value g = gain(t), s = t.parameter("s", {hidden}, {}, initial::zeros),
          b = t.parameter("b", {hidden}, {}, initial::zeros);
    value w = t.parameter("w", {hidden, dim{"hidden", 12}}, {}, initial::normal, 0.3);
    value h = linear(layer_norm(x, g, s), w);
    h = gelu(bias(linear(layer_norm(h, g, b), w), b));
    return x + bias(linear(h, w), b);
  }
};

/// Attention with rotary base `theta`, over the plan's sequences divided into `parts`.
struct attention_layer {
  std::string_view name;
  double theta;
  int parts = 1;
  dim heads = odd::heads;
  rope_scaling scaling{};
  constexpr value forward(trace& t, value x, const context& c) const {
    value h = enter_tp(rms_norm(x, gain(t)), c);
    value q = rope(up(t, h, "q", heads), c.seq, theta, scaling),
          k = rope(up(t, h, "k", heads), c.seq, theta, scaling), v = up(t, h, "v", heads);
    return x + leave_tp(down(t, attend(q, k, v, c, parts), "o", heads), c);
  }
};

/// Two attentions with different head sizes, sequence lengths and rotary bases.
struct two_attentions {
  static constexpr std::string_view name = "two_attentions";
  constexpr value forward(trace& t, value x, const context& c) const {
    value h = enter_tp(rms_norm(x, gain(t)), c);
    value q = rope(up(t, h, "q", heads), c.seq, 10), k = rope(up(t, h, "k", heads), c.seq / 2, 100),
          v = up(t, h, "v", heads);
    value a = down(t, attend(q, k, v, c), "o", heads);
    value q2 = rope(up(t, h, "q2", wide_heads), c.seq, 1000), k2 = up(t, h, "k2", wide_heads),
          v2 = up(t, h, "v2", wide_heads);
    value b = down(t, attend(q2, k2, v2, c, 2), "o2", wide_heads);
    return x + leave_tp(a + b, c);
  }
};

/// Adjacent weights of queries and keys, and a distant weight of values; and a gate whose weight is adjacent
/// to another input.
struct weights_apart {
  static constexpr std::string_view name = "weights_apart";
  constexpr value forward(trace& t, value x, const context& c) const {
    value h = enter_tp(rms_norm(x, gain(t)), c);
    value q = rope(up(t, h, "q", heads), c.seq, 10), k = rope(up(t, h, "k", heads), c.seq, 10);
    value gate = up(t, h, "gate", ffn), other = up(t, h, "other", ffn);
    value a = down(t, swiglu(gate, other), "down", ffn);
    value v = up(t, h, "v", heads);
    return x + leave_tp(a + down(t, attend(q, k, v, c), "o", heads), c);
  }
};

/// Two feed-forwards whose dims have the same name and different sizes.
struct two_ffn {
  static constexpr std::string_view name = "two_ffn";
  constexpr value forward(trace& t, value x, const context& c) const {
    value h = enter_tp(rms_norm(x, gain(t)), c);
    value a = down(t, gelu(up(t, h, "ua", ffn)), "da", ffn),
          b = down(t, gelu(up(t, h, "ub", narrow_ffn)), "db", narrow_ffn);
    return x + leave_tp(a + b, c);
  }
};

/// A feed-forward with any name and width.
struct mlp {
  std::string_view name;
  dim inner = ffn;
  std::string_view gain_name = "g", up_name = "u", down_name = "d";
  constexpr value forward(trace& t, value x, const context& c) const {
    value h = enter_tp(rms_norm(x, gain(t, gain_name)), c);
    return x + leave_tp(down(t, gelu(up(t, h, up_name, inner)), down_name, inner), c);
  }
};

/// A layer with all parameters sharded over tp.
struct only_sharded {
  static constexpr std::string_view name = "only_sharded";
  constexpr value forward(trace& t, value x, const context& c) const {
    return leave_tp(down(t, gelu(up(t, enter_tp(x, c), "u", ffn)), "d", ffn), c);
  }
};

/// A layer with no sharded parameter.
struct only_whole {
  static constexpr std::string_view name = "only_whole";
  constexpr value forward(trace& t, value x, const context&) const { return x + gelu(rms_norm(x, gain(t))); }
};

struct no_parameters {
  static constexpr std::string_view name = "no_parameters";
  constexpr value forward(trace&, value x, const context&) const { return x + gelu(x); }
};

struct identity {
  static constexpr std::string_view name = "identity";
  constexpr value forward(trace&, value x, const context&) const { return x; }
};

/// A bias: the gradient of its result is the gradient of its input.
struct only_bias {
  static constexpr std::string_view name = "only_bias";
  constexpr value forward(trace& t, value x, const context&) const {
    return bias(x, t.parameter("b", {hidden}, {}, initial::zeros));
  }
};

/// Attention without a norm; backward reads its result again.
struct bare_attention {
  static constexpr std::string_view name = "bare_attention";
  constexpr value forward(trace& t, value x, const context& c) const {
    const dim all{"hidden", 12, 6, "head_dim"};
    const auto project = [&](std::string_view w) {
      return linear(x, t.parameter(w, {all, hidden}, {}, initial::normal, 0.3));
    };
    value q = project("q"), k = project("k"), v = project("v");
    value a = attend(q, k, v, c);
    return linear(a, t.parameter("o", {hidden, all}, {}, initial::normal, 0.3));
  }
};

/// A pending sum that is reduced twice, and a value that is used three times.
struct sums {
  static constexpr std::string_view name = "sums";
  constexpr value forward(trace& t, value x, const context& c) const {
    value h = down(t, gelu(up(t, replicate(rms_norm(x, gain(t)), axis::tp), "u", ffn)), "d", ffn);
    value once = all_reduce(h, axis::tp);
    value twice = all_reduce(h + h, axis::tp);
    value y = once + twice;
    (void)c;
    return x + y + y + y;
  }
};

/// A projection between two widths, placed between repeated layers.
struct project {
  std::string_view name;
  dim from, to;
  constexpr value forward(trace& t, value x, const context&) const {
    return gelu(linear(x, t.parameter(name, {to, from}, {}, initial::normal, 0.3)));
  }
};

/// A residual layer for rows of a given width.
struct residual {
  static constexpr std::string_view name = "residual";
  dim width;
  constexpr value forward(trace& t, value x, const context&) const {
    value h = rms_norm(x, t.parameter("g", {width}, {}, initial::ones));
    return x +
           gelu(linear(h, t.parameter("w", {width, dim{width.name, width.size}}, {}, initial::normal, 0.3)));
  }
};

/// A head whose loss is multiplied by `factor`.
struct scaled_head {
  static constexpr std::string_view name = "head";
  double factor;
  constexpr value forward(trace& t, value x, const context& c) const {
    value h = enter_tp(rms_norm(x, t.parameter("norm", {hidden}, {}, initial::ones)), c);
    value logits =
        linear(h, t.parameter("lm_head", {vocab, hidden}, {{axis::tp, "vocab"}}, initial::normal, 0.3));
    return cross_entropy(logits, c.input("targets"), axis::tp, factor * c.loss_scale);
  }
};

/// A layer between embedding and head that uses the embedding's table.
struct tied_between {
  static constexpr std::string_view name = "tied_between";
  constexpr value forward(trace& t, value x, const context& c) const {
    value h = gelu(linear(enter_tp(x, c), t.parameter(table)));
    return x + leave_tp(linear(h, t.parameter("back", {hidden, vocab}, {{axis::tp, "vocab"}}, initial::normal,
                                              0.3)),
                        c);
  }
};

/// Two norms that share a gain and have a shift each.
inline constexpr parameter_handle shared_gain{"gain", {hidden}, {}, initial::ones};
struct first_norm {
  static constexpr std::string_view name = "first_norm";
  constexpr value forward(trace& t, value x, const context&) const {
    return x + layer_norm(x, t.parameter(shared_gain), t.parameter("shift", {hidden}, {}, initial::zeros));
  }
};
struct second_norm {
  static constexpr std::string_view name = "second_norm";
  constexpr value forward(trace& t, value x, const context&) const {
    return x + gelu(layer_norm(x, t.parameter(shared_gain),
                               t.parameter("other_shift", {hidden}, {}, initial::zeros)));
  }
};
/// A layer with a shared matrix and a separate bias.
inline constexpr dim out{"out", 12};
inline constexpr parameter_handle shared_matrix{"matrix", {out, hidden}, {}, initial::normal, 0.3};
struct tied_matrix {
  std::string_view name, back_name, shift_name;
  constexpr value forward(trace& t, value x, const context&) const {
    value h = bias(linear(x, t.parameter(shared_matrix)), t.parameter(shift_name, {out}, {}, initial::zeros));
    return x + linear(gelu(h), t.parameter(back_name, {hidden, out}, {}, initial::normal, 0.3));
  }
};

/// A norm with a gain of a given name.
struct named_like_a_block {
  static constexpr std::string_view name = "alone";
  std::string_view parameter;
  constexpr value forward(trace& t, value x, const context&) const {
    return x + rms_norm(x, gain(t, parameter));
  }
};
/// A norm with a gain that other layers may share.
struct gained {
  std::string_view name;
  parameter_handle gain;
  constexpr value forward(trace& t, value x, const context&) const {
    return x + rms_norm(x, t.parameter(gain));
  }
};
constexpr parameter_handle gain_of(std::string_view called) { return {called, {hidden}, {}, initial::ones}; }

/// A norm and a GEMM whose parameters may all be shared: three ties between layers. With `swapped`, they are
/// declared in another order, and the norm's shift also serves as a bias.
struct three_ties {
  std::string_view name;
  parameter_handle gain, shift, matrix;
  bool swapped = false;
  constexpr value forward(trace& t, value x, const context&) const {
    value w = swapped ? t.parameter(matrix) : value{};
    value g = t.parameter(gain), s = t.parameter(shift);
    if (!swapped) w = t.parameter(matrix);
    value h = linear(layer_norm(x, g, s), w);
    return x + gelu(swapped ? bias(h, s) : linear(h, w));
  }
};

/// A frozen matrix with a trained low-rank adapter. Source: Hu et al. 2021 (LoRA).
struct low_rank {
  static constexpr std::string_view name = "low_rank";
  constexpr value forward(trace& t, value x, const context& c) const {
    const dim rank{"rank", 3};
    value h = enter_tp(rms_norm(x, frozen(gain(t, "frozen_gain"))), c);
    value w = frozen(t.parameter("frozen_up", {ffn, hidden}, {{axis::tp, "ffn"}}, initial::normal, 0.3));
    value a = t.parameter("a", {rank, hidden}, {}, initial::normal, 0.3),
          b = t.parameter("b", {ffn, rank}, {{axis::tp, "ffn"}}, initial::normal, 0.3);
    value u = linear(h, w) + linear(linear(h, a), b);
    value out = frozen(t.parameter("frozen_down", {hidden, ffn}, {{axis::tp, "ffn"}}, initial::normal, 0.3));
    return x + leave_tp(linear(gelu(u), out), c);
  }
};
/// Layers without trained parameters: gradients pass through.
struct frozen_embedding {
  static constexpr std::string_view name = "frozen_embedding";
  parameter_handle table;
  constexpr value forward(trace& t, value ids, const context& c) const {
    return leave_tp(embedding(ids, frozen(t.parameter(table))), c);
  }
};
struct frozen_norms {
  std::string_view name, gain_name, shift_name;
  parameter_handle first_gain;
  constexpr value forward(trace& t, value x, const context&) const {
    value h = gelu(rms_norm(x, frozen(t.parameter(first_gain))));
    value g = frozen(gain(t, gain_name)), s = frozen(gain(t, shift_name));
    return x + layer_norm(h, g, s);
  }
};

/// A layer with an auxiliary head, whose loss has a smaller weight. Source: Lee et al. 2014, deep
/// supervision.
struct supervised {
  static constexpr std::string_view name = "supervised";
  constexpr value forward(trace& t, value x, const context& c) const {
    value h = enter_tp(rms_norm(x, gain(t)), c);
    add_loss(cross_entropy(up(t, h, "words", vocab), c.input("targets"), axis::tp, 0.3 * c.loss_scale));
    return x + leave_tp(down(t, gelu(up(t, h, "u", ffn)), "d", ffn), c);
  }
};
/// Penalties on the layer's input and on another value.
struct penalised {
  static constexpr std::string_view name = "penalised";
  constexpr value forward(trace& t, value x, const context& c) const {
    add_loss(user::square_loss(x, 2 * c.loss_scale));
    value y =
        leave_tp(down(t, gelu(up(t, enter_tp(rms_norm(x, gain(t, "pg")), c), "pu", ffn)), "pd", ffn), c);
    add_loss(user::square_loss(y, 0.5 * c.loss_scale));
    return x + y;
  }
};
/// A head that adds a penalty to its loss.
struct penalised_head {
  static constexpr std::string_view name = "head";
  constexpr value forward(trace& t, value x, const context& c) const {
    add_loss(user::square_loss(x, c.loss_scale));
    return models::head{.table = table, .norm = models::norm_kind::layer}.forward(t, x, c);
  }
};

}  // namespace odd
