// SPDX-License-Identifier: Apache-2.0
// RC210, RC256: losses of routers, and their statistics.
#include "reject.hpp"

inline constexpr bool faulty = fault(true, false);

constexpr models::qwen3_moe balanced(router_losses losses) {
  return {.layers = 2,
          .hidden = 32,
          .heads = 4,
          .kv_heads = 2,
          .head_dim = 8,
          .experts = 4,
          .top_k = 2,
          .expert_ffn = 16,
          .vocab = 64,
          .router_losses = losses};
}
inline constexpr plan negative_balance{.model = balanced({.balance = fault(-0.01, 0.01)}),
                                       .dims = parallel_dims{},
                                       .schedule = one_microbatch,
                                       .recipe = recipe,
                                       .cluster = clusters::cpu};
// error: RC256: router_losses.balance=-0.01; a coefficient is at least 0 (none) and at most 1000000: 0.001
//        and 0.01 are usual
static_assert(valid<negative_balance>);

inline constexpr plan negative_z{.model = models::mixtral{.layers = 2,
                                                          .hidden = 32,
                                                          .heads = 4,
                                                          .kv_heads = 2,
                                                          .experts = 4,
                                                          .top_k = 2,
                                                          .expert_ffn = 16,
                                                          .vocab = 64,
                                                          .router_losses = {.z = fault(-1.0, 0.001)}},
                                 .dims = parallel_dims{},
                                 .schedule = one_microbatch,
                                 .recipe = recipe,
                                 .cluster = clusters::cpu};
// error: RC256: router_losses.z=-1; a coefficient is at least 0 (none) and at most 1000000: 0.001 and 0.01
//        are usual
static_assert(valid<negative_z>);

constexpr models::qwen3_moe counting(bool local) {
  models::qwen3_moe m = balanced({.balance = 0.01, .local = local});
  m.expert_load = true;
  return m;
}
inline constexpr plan local_load{.model = counting(fault(true, false)),
                                 .dims = parallel_dims{},
                                 .schedule = one_microbatch,
                                 .recipe = recipe,
                                 .cluster = clusters::cpu};
// error: RC256: expert_load=true counts choices over the batch, but router_losses.local=true counts those of
//        one rank; take local=false
static_assert(valid<local_load>);

inline constexpr plan odd_number_before_f32{
    .model = models::mixtral{.layers = 2,
                             .hidden = fault(33, 32),
                             .heads = 4,
                             .kv_heads = 2,
                             .experts = 4,
                             .top_k = 2,
                             .expert_ffn = 16,
                             .vocab = 64,
                             .head_dim = 8,
                             .router_losses = {.balance = 0.01}},
    .dims = parallel_dims{},
    .schedule = one_microbatch,
    .recipe = training{.seq = 9, .global_batch = 1, .precision = bf16},
    .cluster = clusters::cpu};
// error: RC256: layer 'embedding' passes 297 numbers in bf16 to the next layer, and the statistics of routers
//        follow them in f32; take an even number of tokens or of features
static_assert(valid<odd_number_before_f32>);

// ---- users' layers

inline constexpr dim hidden{"hidden", 32}, ffn{"ffn", 16};

/// Two layers between an embedding and a head, on tp 2 and dp 2.
template <class Layer, class Head = models::head, int Layers = 2>
struct around {
  int vocab = 64, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr model_routers routers() const { return {Layers, 4, 2, {.balance = 0.01}}; }
  constexpr auto stack() const {
    const parameter_handle table = token_table(dim{"vocab", 64}, hidden);
    return sequential(models::embedding{table}, repeat{2, Layer{}}, Head{table});
  }
};
template <class Model, bool Sp = true>
inline constexpr plan layered{
    .model = Model{},
    .dims = parallel_dims{.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = Sp},
    .schedule = one_microbatch,
    .recipe = recipe,
    .cluster = clusters::cpu};

struct layer {
  static constexpr std::string_view name = "mine";
};
constexpr value logits_of(trace& t, value x) {
  return linear(x, t.parameter("router", {dim{"experts", 4}, hidden}, {}, initial::normal, 0.02));
}

struct statistics_of_gathered : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value logits = logits_of(t, x), gathered = enter_tp(logits, c);
    keep_statistics(faulty ? gathered : logits, route(logits, 2, {}).chosen, {}, c.routers);  // @gathered@
    return x +
           leave_tp(row_parallel(t, column_parallel(t, enter_tp(x, c), "w1", ffn), "w2", hidden, 0.02), c);
  }
};
inline constexpr auto statistics_behind_enter_tp = layered<around<statistics_of_gathered>>;
// error: RC210: balance.cpp:@gathered@: softmax_statistics: the value is replicated (R) over tp; expected
//        each token's logits on one rank, or invariant (I): take the statistics before enter_tp
static_assert(valid<statistics_behind_enter_tp>);

struct statistics_of_other_picks : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value logits = logits_of(t, x), gathered = enter_tp(logits, c);
    // @of_other_picks@
    keep_statistics(logits, route(faulty ? gathered : logits, 2, {}).chosen, {}, c.routers);
    return x +
           leave_tp(row_parallel(t, column_parallel(t, enter_tp(x, c), "w1", ffn), "w2", hidden, 0.02), c);
  }
};
inline constexpr auto statistics_of_other_choices = layered<around<statistics_of_other_picks>>;
// error: RC210: balance.cpp:@of_other_picks@: softmax_statistics: the choice is replicated (R) over tp;
//        expected that of the logits' tokens: route the same logits
static_assert(valid<statistics_of_other_choices>);

struct with_statistics : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value logits = logits_of(t, x);
    keep_statistics(logits, route(logits, 2, {}).chosen, {}, c.routers);
    return x +
           leave_tp(row_parallel(t, column_parallel(t, enter_tp(x, c), "w1", ffn), "w2", hidden, 0.02), c);
  }
};
inline constexpr auto another_number_of_routers = layered<around<with_statistics, models::head, fault(3, 2)>>;
// error: RC256: the model declares routers in 3 layers, but 2 keep their statistics; set .layers = 2, or call
//        keep_statistics once in each
static_assert(valid<another_number_of_routers>);

struct head_without_losses {
  static constexpr std::string_view name = "head";
  parameter_handle table;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value logits = linear(enter_tp(rms_norm(x, t.parameter("norm", {hidden}, {}, initial::ones)), c),
                          t.parameter(table));
    if (!faulty) add_router_losses(t, c.routers, c.sequence_parallel, c.loss_scale);
    return cross_entropy(logits, c.input("targets"), axis::tp, c.loss_scale);
  }
};
inline constexpr auto losses_that_nobody_takes = layered<around<with_statistics, head_without_losses>>;
// error: RC256: layer 'head' ends the model and takes no losses of its routers; call add_router_losses, or
//        leave out routers()
static_assert(valid<losses_that_nobody_takes>);

/// The balance loss of one rank's choices is not the batch's.
struct head_of_parts {
  static constexpr std::string_view name = "head";
  parameter_handle table;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value logits = linear(enter_tp(rms_norm(x, t.parameter("norm", {hidden}, {}, initial::ones)), c),
                          t.parameter(table));
    value sums = all_reduce(handed_statistics(t), axis::tp), whole = faulty ? sums : all_reduce_batch(sums);
    // @of_parts@
    add_loss(t.apply(ops::balance_loss, {whole, sums}, {__FILE__, __LINE__}, {.with = {.factor = 0.01}}));
    return cross_entropy(logits, c.input("targets"), axis::tp, c.loss_scale);
  }
};
inline constexpr auto balance_of_parts = layered<around<with_statistics, head_of_parts>>;
// error: RC210: balance.cpp:@of_parts@: balance_loss: the number of choices is a pending sum (P) over
//        dp_replicate; expected R, I or V: take the sum over the batch first (all_reduce_batch)
static_assert(valid<balance_of_parts>);

struct head_of_whole {
  static constexpr std::string_view name = "head";
  parameter_handle table;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value logits = linear(enter_tp(rms_norm(x, t.parameter("norm", {hidden}, {}, initial::ones)), c),
                          t.parameter(table));
    value sums = all_reduce(handed_statistics(t), axis::tp), whole = all_reduce_batch(sums);
    value loss = t.apply(ops::balance_loss, {whole, faulty ? whole : sums}, {}, {.with = {.factor = 0.01}});
    add_loss(loss);  // @counted_by_each@
    return cross_entropy(logits, c.input("targets"), axis::tp, c.loss_scale);
  }
};
inline constexpr auto balance_that_each_counts = layered<around<with_statistics, head_of_whole>>;
// error: RC210: balance.cpp:@counted_by_each@: add_loss: the loss is invariant (I) over dp_replicate;
//        expected a pending sum (P): make it of values that are sharded along the tokens
static_assert(valid<balance_that_each_counts>);
