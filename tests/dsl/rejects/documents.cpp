// SPDX-License-Identifier: Apache-2.0
// RC259: the token that ends documents, and the ops that take documents; RC210: combinations.
#include "reject.hpp"

constexpr auto packed(int end, int vocab_used = 0) {
  return plan{
      .model =
          models::gpt2{.layers = 1, .hidden = 8, .heads = 2, .ffn = 8, .vocab = 16, .vocab_used = vocab_used},
      .schedule = one_microbatch,
      .recipe = training{.seq = 8, .global_batch = 4, .end_of_document = end},
      .cluster = clusters::cpu};
}

inline constexpr auto past_the_vocabulary = packed(fault(16, 15));
// error: RC259: end_of_document=16 is no token; tokens are 0 to 15, and -1 says that a sequence is one
//        document
static_assert(valid<past_the_vocabulary>);

inline constexpr auto in_the_padding = packed(fault(10, 9), 10);
// error: RC259: end_of_document=10 is no token; tokens are 0 to 9, and -1 says that a sequence is one
//        document
static_assert(valid<in_the_padding>);

inline constexpr auto below_zero = packed(fault(-2, -1));
// error: RC259: end_of_document=-2 is no token; tokens are 0 to 15, and -1 says that a sequence is one
//        document
static_assert(valid<below_zero>);

/// Attention with or without the starts of documents.
struct own_attention {
  static constexpr std::string_view name = "own";
  bool told, of_targets = false;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const dim hidden = t.of(x).shape[1], heads{"heads", 8, 4, "head_dim"};
    value h = enter_tp(x, c);
    value q = column_parallel(t, h, "wq", heads), k = column_parallel(t, h, "wk", heads),
          v = column_parallel(t, h, "wv", heads);
    value keys = all_gather(k, axis::cp, c.tokens.name), values = all_gather(v, axis::cp, c.tokens.name);
    value documents = of_targets ? c.input("targets") : c.input("starts");
    value o = told ? attention(q, keys, values, documents, c.rows, c.seq)  // @told@
                   : attention(q, keys, values, c.rows, c.seq);
    return x + leave_tp(row_parallel(t, o, "wo", hidden, 0.02), c);
  }
};
struct own_positions {
  static constexpr std::string_view name = "positions";
  bool told;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value table = t.parameter("wpe", {dim{"positions", c.seq}, t.of(x).shape[1]}, {}, initial::normal, 0.02);
    return told ? position(x, table, c) : position(x, table, c.seq);
  }
};
template <class Layer>
struct model_with {
  Layer layer;
  int vocab = 8, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const parameter_handle table = token_table({"vocab", vocab}, {"hidden", 8}),
                           out = token_table({"vocab", vocab}, {"hidden", 8}, "out");
    return sequential(models::embedding{table}, repeat{1, layer}, models::head{out});
  }
};
template <class Layer>
constexpr auto planned(Layer layer) {
  return plan{.model = model_with<Layer>{layer},
              .schedule = one_microbatch,
              .recipe = training{.seq = 8, .global_batch = 4, .end_of_document = 3},
              .cluster = clusters::cpu};
}

inline constexpr auto attention_to_all = planned(own_attention{fault(false, true)});
// error: RC259: attention of layer 'own' takes no starts of documents, but end_of_document packs documents
//        into sequences; give it the layer_context's starts, or call self_attention and position with the
//        context
static_assert(valid<attention_to_all>);

inline constexpr auto positions_of_all = planned(own_positions{fault(false, true)});
// error: RC259: position of layer 'positions' takes no starts of documents, but end_of_document packs
//        documents into sequences; give it the layer_context's starts, or call self_attention and position
//        with the context
static_assert(valid<positions_of_all>);

inline constexpr auto told_of_targets = planned(own_attention{true, fault(true, false)});
// error: RC210: documents.cpp:@told@: document_attention: starts is sharded along tokens (V) over cp;
//        expected the same on every rank (I): take the layer_context's starts
static_assert(valid<told_of_targets>);
