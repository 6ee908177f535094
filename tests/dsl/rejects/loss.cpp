// SPDX-License-Identifier: Apache-2.0
// RC260: losses that are means over a rank's own tokens. RC268, RC271: losses that count ignored labels.
// RC272, RC273: losses without the weights of labels. RC210: masks of padding.
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
// error: RC260: layer 'mine' multiplies its loss by 0.015625 on these ranks, and by 7.8125e-3 on one device;
//        a loss is a mean over all tokens of a step on every layout: multiply it by loss_scale of the
//        layer_context, 7.8125e-3
static_assert(valid<mean_of_replicas>);

inline constexpr auto mean_of_microbatches =
    planned(ending_in<head<tokens_of_microbatch, 2>>{}, {.world = 2, .tp = 2}, 4);
// error: RC260: layer 'mine' multiplies its loss by 0.03125 on these ranks, and by 7.8125e-3 on one device; a
//        loss is a mean over all tokens of a step on every layout: multiply it by loss_scale of the
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

constexpr auto ignoring(const auto& model) {
  return plan{.model = model,
              .schedule = schedules::gpipe{1},
              .recipe = training{.seq = 16, .global_batch = 8, .precision = f32, .ignored_label = -100},
              .cluster = clusters::cpu};
}

/// Losses of a user, of a value alone, with its targets, and with the number of labels that count.
constexpr void loss_rule(complaint&, types in, type* out, const op&) {
  for (axis a : axes) out[0][a] = in[0][a].k == placement::V ? P : in[0][a];
}
inline constexpr op_row square_grad{
    .name = "square_grad",
    .ports = {ports::out("dx", "tokens width"), ports::in("x", "tokens width")},
    .rule = placement_rules::elementwise<false>,
    .kernel = "user::square_grad",
    .sizes = "tokens*width number",
    .header = "square.hpp"};
constexpr void give_square_grad(backward& b) { b.give("x", b.apply(square_grad, {b["x"]})); }
inline constexpr op_row square{.name = "square",
                               .ports = {ports::sum("loss", ""), ports::in("x", "tokens width")},
                               .rule = loss_rule,
                               .dual = give_square_grad,
                               .kernel = "user::square",
                               .sizes = "tokens*width number",
                               .header = "square.hpp"};
inline constexpr op_row label_square{
    .name = "label_square",
    .ports = {ports::sum("loss", ""), ports::in("x", "tokens width"), ports::in("targets", "tokens").index()},
    .rule = loss_rule,
    .dual = give_square_grad,
    .kernel = "user::label_square",
    .sizes = "tokens*width number",
    .header = "square.hpp"};
inline constexpr op_row masked_square{
    .name = "masked_square",
    .ports = {ports::sum("loss", ""), ports::in("x", "tokens width"), ports::in("targets", "tokens").index(),
              ports::in("count", "1").wide()},
    .rule = loss_rule,
    .dual = give_square_grad,
    .kernel = "user::masked_square",
    .sizes = "tokens*width number",
    .header = "square.hpp"};

enum class of_head : unsigned char { targets, sums, tokens };
template <of_head Of>
struct own_head {
  static constexpr std::string_view name = "mine";
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const operand logits = linear(enter_tp(x, c), t.parameter("out", {dim{"vocab", 64}, dim{"hidden", 32}},
                                                              {{axis::tp, "vocab"}}, initial::ones));
    const value targets = c.input("targets");
    const op by{.with = {.factor = c.loss_scale}};
    if (!faulty) return t.apply(masked_square, {logits.v, targets, label_count(c)}, logits.from, by);
    if (Of == of_head::targets) return t.apply(label_square, {logits.v, targets}, logits.from, by);
    const value read = Of == of_head::sums ? softmax_sums(logits, targets, axis::tp) : logits.v;
    return t.apply(square, {read}, logits.from, by);
  }
};

inline constexpr auto negative_labels = ignoring(ending_in<own_head<of_head::targets>>{});
// error: RC271: label_square of layer 'mine' reads labels as if all counted, and some are
//        ignored_label=-100; give it label_count(c) too, call cross_entropy(logits, c), or leave out
//        ignored_label
static_assert(valid<negative_labels>);

inline constexpr auto logits_of_negative_labels = ignoring(ending_in<own_head<of_head::sums>>{});
// error: RC271: square of layer 'mine' reads labels as if all counted, and some are ignored_label=-100; give
//        it label_count(c) too, call cross_entropy(logits, c), or leave out ignored_label
static_assert(valid<logits_of_negative_labels>);

inline constexpr auto no_label_left_out = ignoring(ending_in<own_head<of_head::tokens>>{});
// error: RC271: ignored_label=-100, and no loss of the model leaves labels out; call cross_entropy(logits,
//        c), or leave out ignored_label
static_assert(valid<no_label_left_out>);

constexpr auto weighing(const auto& model) {
  return plan{.model = model,
              .dims = parallel_dims{.world = 2, .tp = 2},
              .schedule = schedules::gpipe{1},
              .recipe = training{.seq = 16, .global_batch = 8, .precision = f32, .token_weights = true},
              .cluster = clusters::cpu};
}

inline constexpr auto mean_without_weights = weighing(ending_in<masked_head>{});
// error: RC272: cross_entropy of layer 'mine' reads labels without their weights, and token_weights=true;
//        give it token_weights(c) and label_count(c) too, call cross_entropy(logits, c), or leave out
//        token_weights
static_assert(valid<mean_without_weights>);

/// A loss with the number of labels or the sum of weights, and without the weights.
struct unweighted_head {
  static constexpr std::string_view name = "mine";
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const operand logits = linear(enter_tp(x, c), t.parameter("out", {dim{"vocab", 64}, dim{"hidden", 32}},
                                                              {{axis::tp, "vocab"}}, initial::ones));
    if (!faulty) return cross_entropy(logits, c);
    return masked_cross_entropy(logits, c.input("targets"), label_count(c), axis::tp);
  }
};
inline constexpr auto sum_without_weights = weighing(ending_in<unweighted_head>{});
// error: RC272: masked_cross_entropy of layer 'mine' reads labels without their weights, and
//        token_weights=true; give it token_weights(c) and label_count(c) too, call cross_entropy(logits, c),
//        or leave out token_weights
static_assert(valid<sum_without_weights>);

/// A loss of the logits alone, or of labels with weights.
struct unlabeled_head {
  static constexpr std::string_view name = "mine";
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const operand logits = linear(enter_tp(x, c), t.parameter("out", {dim{"vocab", 64}, dim{"hidden", 32}},
                                                              {{axis::tp, "vocab"}}, initial::ones));
    if (!faulty) return cross_entropy(logits, c);
    return t.apply(square, {logits.v}, logits.from, {.with = {.factor = c.loss_scale}});
  }
};
inline constexpr auto weights_unread = weighing(ending_in<unlabeled_head>{});
// error: RC273: token_weights=true, and no loss of the model is divided by the sum of the weights; call
//        cross_entropy(logits, c), give a loss of your own token_weights(c) and label_count(c), or leave out
//        token_weights
static_assert(valid<weights_unread>);

/// Logits without the padding of a vocabulary. Each fault keeps more columns than there are, or none.
template <int Kept>
struct padded_head {
  static constexpr std::string_view name = "mine";
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const value logits = linear(enter_tp(x, c), t.parameter("out", {dim{"vocab", 64}, dim{"hidden", 32}},
                                                            {{axis::tp, "vocab"}}, initial::ones));
    const value masked = mask_padding(logits, faulty ? Kept : 60);
    return cross_entropy(masked, c);
  }
};
inline constexpr auto more_columns_kept = planned(ending_in<padded_head<65>>{}, {.world = 2, .tp = 2}, 1);
// error: RC210: loss.cpp:202: mask_padding: it keeps 65 columns of 64; expected 1 to 64
static_assert(valid<more_columns_kept>);

inline constexpr auto no_columns_kept = planned(ending_in<padded_head<0>>{}, {.world = 2, .tp = 2}, 1);
// error: RC210: loss.cpp:202: mask_padding: it keeps 0 columns of 64; expected 1 to 64
static_assert(valid<no_columns_kept>);
