// SPDX-License-Identifier: Apache-2.0
// RC260: losses that are means over a rank's own tokens. RC268: losses that count ignored labels.
#include "reject.hpp"

inline constexpr bool faulty = fault(true, false);

/// `Of`: the number that a faulty loss divides by.
template <int (*Of)(const layer_context&), int Share = 1>
struct head {
  static constexpr std::string_view name = "mine";
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const value logits = linear(enter_tp(x, c), t.parameter("out", {dim{"vocab", 64}, dim{"hidden", 32}},
                                                            {{axis::tp, "vocab"}}, initial::ones));
    return cross_entropy(logits, c.input("targets"), axis::tp, faulty ? 1.0 / Of(c) : c.loss_scale / Share);
  }
};
template <class Last>
struct ending_in {
  int vocab = 64, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const dim hidden{"hidden", 32}, heads{"heads", 32, 8, "head_dim"};
    return sequential(models::embedding{token_table(dim{"vocab", 64}, hidden)},
                      repeat{1, models::block{{hidden, heads, heads, {1}, 1e4}, dim{"ffn", 64}}}, Last{});
  }
};
constexpr int tokens_of_rank(const layer_context& c) { return c.rows * c.seq; }
constexpr int tokens_of_microbatch(const layer_context& c) { return c.tokens.size; }

constexpr auto planned(const auto& model, const parallel_dims& dims, int microbatches) {
  return plan{.model = model,
              .dims = dims,
              .schedule = schedules::gpipe{microbatches},
              .recipe = training{.seq = 16, .global_batch = 8, .precision = f32},
              .cluster = clusters::cpu};
}

inline constexpr auto mean_of_replicas =
    planned(ending_in<head<tokens_of_rank>>{}, {.world = 2, .dp_replicate = 2}, 1);
// error: RC260: layer 'mine' takes a loss times 0.015625 on these ranks, and times 7.8125e-3 on one device; a
//        loss is a mean over all tokens of a step on every layout: take it times loss_scale of the
//        layer_context, 7.8125e-3
static_assert(valid<mean_of_replicas>);

inline constexpr auto mean_of_microbatches =
    planned(ending_in<head<tokens_of_microbatch, 2>>{}, {.world = 2, .tp = 2}, 4);
// error: RC260: layer 'mine' takes a loss times 0.03125 on these ranks, and times 7.8125e-3 on one device; a
//        loss is a mean over all tokens of a step on every layout: take it times loss_scale of the
//        layer_context, 7.8125e-3
static_assert(valid<mean_of_microbatches>);

/// A loss as a mean over all tokens or over labels that count. tp shards the vocabulary.
struct masked_head {
  static constexpr std::string_view name = "mine";
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const value logits = linear(enter_tp(x, c), t.parameter("out", {dim{"vocab", 64}, dim{"hidden", 32}},
                                                            {{axis::tp, "vocab"}}, initial::ones));
    return faulty ? cross_entropy(logits, c.input("targets"), axis::tp, c.loss_scale)
                  : cross_entropy(logits, c);
  }
};
inline constexpr plan ignored_labels_counted{
    .model = ending_in<masked_head>{},
    .dims = parallel_dims{.world = 2, .tp = 2},
    .schedule = schedules::gpipe{1},
    .recipe = training{.seq = 16, .global_batch = 8, .precision = f32, .ignored_label = -100},
    .cluster = clusters::cpu};
// error: RC268: layer 'mine' takes the mean of a loss over all tokens, and ignored_label=-100 leaves some
//        labels out; call cross_entropy(logits, c), which divides by the number of labels that count
static_assert(valid<ignored_labels_counted>);
