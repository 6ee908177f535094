// SPDX-License-Identifier: Apache-2.0
// Layers and models that a user may write and no other test has: a weight used twice, two rotary bases, dims
// and layers of equal names, layers without parameters, names that are no identifiers.
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

/// Attention over `parts` pieces of each sequence.
constexpr value attend(value q, value k, value v, const context& c, int parts = 1) {
  value keys = all_gather(k, axis::cp, c.tokens.name);
  value values = all_gather(v, axis::cp, c.tokens.name);
  return attention(q, keys, values, parts * c.rows, c.seq / parts);
}

/// The layers and nothing else.
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
/// What every embedding here has, and layers that share it.
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

/// An op of a user's own.
struct silu_mlp {
  static constexpr std::string_view name = "silu_mlp";
  constexpr value forward(trace& t, value x, const context& c) const {
    value h = enter_tp(rms_norm(x, gain(t)), c);
    return x + leave_tp(down(t, user::silu(up(t, h, "u", ffn)), "d", ffn), c);
  }
};

/// Products of values of each placement: of a pending sum by what each rank has, of shards, of a value by
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

/// One gain for the heads of queries and keys, another for those of fewer keys.
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

/// Rows and heads taken apart and put together in another order; of each, one part is not used at all.
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

/// Products of one input, two of neighbouring weights with another's between them.
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

/// Attention at rotary base `theta`; over sequences of the plan's length divided by `parts`.
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

/// Two attentions with heads of two sizes, lengths and bases.
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

/// Queries and keys whose weights are neighbours, and values whose weight is not; a gate beside what it is no
/// gate of.
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

/// Two feed-forwards whose dims have one name and two sizes.
struct two_ffn {
  static constexpr std::string_view name = "two_ffn";
  constexpr value forward(trace& t, value x, const context& c) const {
    value h = enter_tp(rms_norm(x, gain(t)), c);
    value a = down(t, gelu(up(t, h, "ua", ffn)), "da", ffn),
          b = down(t, gelu(up(t, h, "ub", narrow_ffn)), "db", narrow_ffn);
    return x + leave_tp(a + b, c);
  }
};

/// A feed-forward of any name and width.
struct mlp {
  std::string_view name;
  dim inner = ffn;
  std::string_view gain_name = "g", up_name = "u", down_name = "d";
  constexpr value forward(trace& t, value x, const context& c) const {
    value h = enter_tp(rms_norm(x, gain(t, gain_name)), c);
    return x + leave_tp(down(t, gelu(up(t, h, up_name, inner)), down_name, inner), c);
  }
};

/// Every parameter is sharded over tp.
struct only_sharded {
  static constexpr std::string_view name = "only_sharded";
  constexpr value forward(trace& t, value x, const context& c) const {
    return leave_tp(down(t, gelu(up(t, enter_tp(x, c), "u", ffn)), "d", ffn), c);
  }
};

/// None is.
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

/// Its result's gradient is its input's.
struct only_bias {
  static constexpr std::string_view name = "only_bias";
  constexpr value forward(trace& t, value x, const context&) const {
    return bias(x, t.parameter("b", {hidden}, {}, initial::zeros));
  }
};

/// Its result is read again in backward.
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

/// A pending sum that is reduced twice, and a value used three times.
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

/// From rows of one width to another; stands between repeated layers.
struct project {
  std::string_view name;
  dim from, to;
  constexpr value forward(trace& t, value x, const context&) const {
    return gelu(linear(x, t.parameter(name, {to, from}, {}, initial::normal, 0.3)));
  }
};

/// A residual layer on rows of a given width.
struct residual {
  static constexpr std::string_view name = "residual";
  dim width;
  constexpr value forward(trace& t, value x, const context&) const {
    value h = rms_norm(x, t.parameter("g", {width}, {}, initial::ones));
    return x +
           gelu(linear(h, t.parameter("w", {width, dim{width.name, width.size}}, {}, initial::normal, 0.3)));
  }
};

/// A head whose loss counts `factor` times.
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

/// What an embedding has, used by a layer between it and the head.
struct tied_between {
  static constexpr std::string_view name = "tied_between";
  constexpr value forward(trace& t, value x, const context& c) const {
    value h = gelu(linear(enter_tp(x, c), t.parameter(table)));
    return x + leave_tp(linear(h, t.parameter("back", {hidden, vocab}, {{axis::tp, "vocab"}}, initial::normal,
                                              0.3)),
                        c);
  }
};

/// A norm alone; another has its gain and a shift of its own.
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
/// A matrix of another layer, with a bias of its own.
inline constexpr dim out{"out", 12};
inline constexpr parameter_handle shared_matrix{"matrix", {out, hidden}, {}, initial::normal, 0.3};
struct tied_matrix {
  std::string_view name, back_name, shift_name;
  constexpr value forward(trace& t, value x, const context&) const {
    value h = bias(linear(x, t.parameter(shared_matrix)), t.parameter(shift_name, {out}, {}, initial::zeros));
    return x + linear(gelu(h), t.parameter(back_name, {hidden, out}, {}, initial::normal, 0.3));
  }
};

/// A gain of a given name, and one of an earlier layer.
struct named_like_a_block {
  static constexpr std::string_view name = "alone";
  std::string_view parameter;
  constexpr value forward(trace& t, value x, const context&) const {
    return x + rms_norm(x, gain(t, parameter));
  }
};
/// The same with a gain that other layers have too.
struct gained {
  std::string_view name;
  parameter_handle gain;
  constexpr value forward(trace& t, value x, const context&) const {
    return x + rms_norm(x, t.parameter(gain));
  }
};
constexpr parameter_handle gain_of(std::string_view called) { return {called, {hidden}, {}, initial::ones}; }

/// A norm and a product of which everything may be another layer's: three ties of a layer, in another order
/// where
/// `swapped`, the gain and the shift of one norm among them.
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

/// A frozen matrix beside one of low rank that is trained. Source: Hu et al. 2021 (LoRA).
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
/// Layers that are not trained at all: gradients go through.
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

/// A head of its own in front of a product: what it predicts counts less. Source: Lee et al. 2014, deep
/// supervision.
struct supervised {
  static constexpr std::string_view name = "supervised";
  constexpr value forward(trace& t, value x, const context& c) const {
    value h = enter_tp(rms_norm(x, gain(t)), c);
    add_loss(cross_entropy(up(t, h, "words", vocab), c.input("targets"), axis::tp, 0.3 * c.loss_scale));
    return x + leave_tp(down(t, gelu(up(t, h, "u", ffn)), "d", ffn), c);
  }
};
/// Penalties: of what is handed in, and of another value.
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
/// A head that adds a penalty to its own loss.
struct penalised_head {
  static constexpr std::string_view name = "head";
  constexpr value forward(trace& t, value x, const context& c) const {
    add_loss(user::square_loss(x, c.loss_scale));
    return models::head{.table = table, .norm = models::norm_kind::layer}.forward(t, x, c);
  }
};

}  // namespace odd
