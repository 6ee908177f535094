// SPDX-License-Identifier: Apache-2.0
// RC103, RC108, RC206, RC209, RC210, RC215, RC226, RC240, RC253: routers and experts with operands that they
// cannot take, and on ranks that they cannot be spread over.
#include "reject.hpp"

inline constexpr dim hidden{"hidden", 32}, ffn{"ffn", 16}, all{"experts", 4 * 32, 32, "hidden"};
inline constexpr bool faulty = fault(true, false);

/// One layer between an embedding and a head, on two tp ranks.
template <class Layer>
struct around {
  int vocab = 64, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const dim words{"vocab", 64};
    const parameter_handle table = token_table(words, hidden);
    return sequential(models::embedding{table, true}, repeat{2, Layer{}},
                      models::head{.table = table, .norm = models::norm_kind::layer});
  }
};
template <class Layer, bool Sp = false>
inline constexpr plan layered{.model = around<Layer>{},
                              .dims = parallel_dims{.world = 2, .tp = 2, .sequence_parallel = Sp},
                              .schedule = one_microbatch,
                              .recipe = recipe,
                              .cluster = clusters::cpu};

struct layer {
  static constexpr std::string_view name = "mine";
};
constexpr value logits_of(trace& t, value x) {
  return linear(x, t.parameter("router", {dim{"experts", 4}, hidden}, {}, initial::normal, 0.02));
}
constexpr value weight(trace& t, std::string_view name) {
  return t.parameter(name, {all, ffn}, {{axis::tp, ffn.name}}, initial::normal, 0.02);
}
constexpr value experts(trace& t, value rows, const arrangement& by) {
  value up = expert_up(rows, weight(t, "up"), by);  // @experts@
  return expert_down(gelu(up), weight(t, "down"), by);
}

struct pending_logits : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(x, c),
          y = row_parallel(t, column_parallel(t, h, "w1", ffn), "w2", dim{"experts", 4}, 0.02);
    if (!faulty) y = replicate(all_reduce(y, axis::tp), axis::tp);
    const routing routed = route(y, 2, {});  // @pending_logits@
    const arrangement by = arrange(routed.chosen, 4);
    return x + leave_tp(combine(experts(t, dispatch(h, by), by), routed.weights, by), c);
  }
};
inline constexpr auto a_router_of_a_pending_sum = layered<pending_logits>;
// error: RC210: experts.cpp:@pending_logits@: softmax_top: the value is a pending sum (P) over tp; expected
//        R, I or V: reduce it first (all_reduce, reduce_scatter)
static_assert(valid<a_router_of_a_pending_sum>);

struct sharded_logits : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(x, c);
    value y = faulty ? column_parallel(t, h, "router", dim{"experts", 4}) : logits_of(t, h);
    const routing routed = route(y, 2, {.scores = router_rule::sigmoid});  // @sharded_logits@
    const arrangement by = arrange(routed.chosen, 4);
    return x + leave_tp(combine(experts(t, dispatch(h, by), by), routed.weights, by), c);
  }
};
inline constexpr auto a_router_of_some_experts = layered<sharded_logits>;
// error: RC210: experts.cpp:@sharded_logits@: sigmoid_top: the value is sharded along experts (V) over tp;
//        expected the scores of all experts on each rank (the largest are taken): all_gather it first
static_assert(valid<a_router_of_some_experts>);

template <int Picks, int Total>
struct numbers : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(x, c);
    const routing routed = route(logits_of(t, h), Picks, {.scaling = Total / 2.0});  // @numbers@
    const arrangement by = arrange(routed.chosen, 4);
    return x + leave_tp(combine(experts(t, dispatch(h, by), by), routed.weights, by), c);
  }
};
inline constexpr auto more_picks_than_experts = layered<numbers<fault(5, 4), 2>>;
// error: RC210: experts.cpp:@numbers@: softmax_top: it takes 5 of 4 experts; expected at least 1, and no more
//        than there are
static_assert(valid<more_picks_than_experts>);
inline constexpr auto weights_that_add_up_to_nothing = layered<numbers<2, fault(0, 2)>>;
// error: RC210: experts.cpp:@numbers@: normalize: its rows are to add up to 0; expected a positive number, 1
//        as a rule
static_assert(valid<weights_that_add_up_to_nothing>);

struct other_tokens : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(x, c), y = logits_of(t, x);
    const routing routed = route(faulty ? y : replicate(y, axis::tp), 2, {});
    const arrangement by = arrange(routed.chosen, 4);
    value rows = dispatch(h, by);  // @other_tokens@
    return x + leave_tp(combine(experts(t, rows, by), routed.weights, by), c);
  }
};
inline constexpr auto a_choice_of_invariant_tokens = layered<other_tokens>;
// error: RC210: experts.cpp:@other_tokens@: dispatch: the choice is invariant (I) over tp; expected placed as
//        the tokens are: route tokens that are placed like those which go to experts
static_assert(valid<a_choice_of_invariant_tokens>);

struct invariant_rows : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = faulty ? x : enter_tp(x, c);
    const routing routed = route(logits_of(t, h), 2, {});
    const arrangement by = arrange(routed.chosen, 4);
    value up = expert_up(dispatch(h, by), weight(t, "up"), by);  // @invariant_rows@
    return x + leave_tp(combine(expert_down(gelu(up), weight(t, "down"), by), routed.weights, by), c);
  }
};
inline constexpr auto experts_of_invariant_tokens = layered<invariant_rows>;
// error: RC210: experts.cpp:@invariant_rows@: expert_up 'up': the value is invariant (I) over tp; expected
//        replicated (R), the weight being sharded along its output features: convert it first (replicate: its
//        gradient is then all-reduced)
static_assert(valid<experts_of_invariant_tokens>);

enum class slot_parameter { shift, gain, matrix };
template <slot_parameter Of>
struct sums_over_slots : layer {
  constexpr value changed(trace& t, value rows) const {
    value w = Of == slot_parameter::matrix ? t.parameter("w", {hidden, hidden}, {}, initial::normal, 0.02)
                                           : t.parameter("w", {hidden}, {}, initial::ones);
    if (!faulty) w = frozen(w);
    if (Of == slot_parameter::shift) return bias(rows, w);     // @shift_of_slots@
    if (Of == slot_parameter::gain) return rms_norm(rows, w);  // @gain_of_slots@
    return linear(rows, w);                                    // @matrix_of_slots@
  }
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(x, c);
    const routing routed = route(logits_of(t, h), 2, {});
    const arrangement by = arrange(routed.chosen, 4);
    value rows = changed(t, dispatch(h, by));
    return x + leave_tp(combine(experts(t, rows, by), routed.weights, by), c);
  }
};
inline constexpr auto a_shift_of_slots = layered<sums_over_slots<slot_parameter::shift>>;
// error: RC210: experts.cpp:@shift_of_slots@: bias_grad 'w': it sums over slots of experts, and a slot that
//        no token fills holds what its memory held before; expected rows of tokens: use the parameter before
//        dispatch or after combine, or freeze it
static_assert(valid<a_shift_of_slots>);
inline constexpr auto a_gain_of_slots = layered<sums_over_slots<slot_parameter::gain>>;
// error: RC210: experts.cpp:@gain_of_slots@: rms_norm_dw 'w': it sums over slots of experts, and a slot that
//        no token fills holds what its memory held before; expected rows of tokens: use the parameter before
//        dispatch or after combine, or freeze it
static_assert(valid<a_gain_of_slots>);
inline constexpr auto a_matrix_of_slots = layered<sums_over_slots<slot_parameter::matrix>>;
// error: RC210: experts.cpp:@matrix_of_slots@: linear_dw 'w': it sums over slots of experts, and a slot that
//        no token fills holds what its memory held before; expected rows of tokens: use the parameter before
//        dispatch or after combine, or freeze it
static_assert(valid<a_matrix_of_slots>);

struct sharded_experts : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(x, c), y = logits_of(t, h);
    const routing routed = route(y, 2, {});
    const arrangement by = arrange(routed.chosen, 4);
    value rows = dispatch(h, by);
    if (faulty) {
      value up = t.parameter("up", {all, ffn}, {{axis::tp, "experts"}}, initial::normal, 0.02);
      // @sharded_experts@
      value made = expert_up(rows, up, by);
      return x + leave_tp(combine(expert_down(made, weight(t, "down"), by), routed.weights, by), c);
    }
    return x + leave_tp(combine(experts(t, rows, by), routed.weights, by), c);
  }
};
inline constexpr auto experts_on_other_ranks = layered<sharded_experts>;
// error: RC210: experts.cpp:@sharded_experts@: expert_up 'up': the weight is sharded along experts (V) over
//        tp; expected all experts on each rank, or their columns sharded: shard it along its columns
static_assert(valid<experts_on_other_ranks>);

constexpr value own_router(trace& t) {
  return t.parameter("own", {dim{"experts", 4}, hidden}, {}, initial::normal, 0.02);
}
struct other_offsets : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(x, c);
    const routing routed = route(logits_of(t, h), 2, {}), own = route(linear(x, own_router(t)), 2, {});
    const arrangement by = arrange(routed.chosen, 4), of_shard = arrange(own.chosen, 4);
    value rows = dispatch(h, by);
    value down = experts(t, rows, {by.places, faulty ? of_shard.offsets : by.offsets});
    return x + leave_tp(combine(down, routed.weights, by), c) +
           combine(dispatch(x, of_shard), own.weights, of_shard);
  }
};
inline constexpr auto offsets_of_other_tokens = layered<other_offsets, true>;
// error: RC210: experts.cpp:@experts@: expert_up 'up': the offset table is a pending sum (P) over tp;
//        expected that of the slots' tokens: arrange the choice of the tokens that were dispatched
static_assert(valid<offsets_of_other_tokens>);

struct weights_once : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(x, c), y = logits_of(t, x);
    const routing routed = route(replicate(y, axis::tp), 2, {}), invariant = route(y, 2, {});
    const arrangement by = arrange(routed.chosen, 4);
    value down = experts(t, dispatch(h, by), by);
    value sum = combine(down, faulty ? invariant.weights : routed.weights, by);  // @weights_once@
    return x + leave_tp(sum, c);
  }
};
inline constexpr auto invariant_weights_of_parts = layered<weights_once>;
// error: RC210: experts.cpp:@weights_once@: combine: the right operand is invariant (I) over tp; expected
//        replicated (R), the other being a pending sum: convert it first (replicate: its gradient is then
//        all-reduced)
static_assert(valid<invariant_weights_of_parts>);

// ---- models

template <class Change>
constexpr auto changed(Change change) {
  models::qwen3_moe m{.layers = 4,
                      .hidden = 32,
                      .heads = 4,
                      .kv_heads = 2,
                      .head_dim = 8,
                      .experts = 4,
                      .top_k = 2,
                      .expert_ffn = 16,
                      .vocab = 64};
  if (faulty) change(m);
  return m;
}
template <auto Change>
inline constexpr plan sparse{.model = changed(Change),
                             .dims = parallel_dims{.world = 2, .tp = 2},
                             .schedule = one_microbatch,
                             .recipe = recipe,
                             .cluster = clusters::cpu};
inline constexpr auto no_dense_ffn = sparse<[](models::qwen3_moe& m) { m.decoder_sparse_step = 2; }>;
// error: RC206: ffn=0; a size is at least 1
static_assert(valid<no_dense_ffn>);
inline constexpr auto too_many_picks = sparse<[](models::qwen3_moe& m) { m.top_k = 6; }>;
// error: RC215: top_k=6 is more than experts=4: take top_k=3 or top_k=4, or experts=6 or experts=7
static_assert(valid<too_many_picks>);
inline constexpr auto a_layer_that_is_not_there = sparse<[](models::qwen3_moe& m) {
  m.mlp_only_layers = {1, 4};
  m.ffn = 64;
}>;
// error: RC253: mlp_only_layers names layer 4; the model has layers 0 to 3
static_assert(valid<a_layer_that_is_not_there>);
inline constexpr auto too_many_dense_layers = sparse<[](models::qwen3_moe& m) {
  m.mlp_only_layers = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  m.ffn = 64;
}>;
// error: RC253: mlp_only_layers names 17 layers; it may name at most 16 (decoder_sparse_step can describe
//        more, at regular distances)
static_assert(valid<too_many_dense_layers>);

// ---- experts over ranks

template <class Layer>
inline constexpr plan spread{.model = around<Layer>{},
                             .dims = parallel_dims{.world = 2, .dp_shard = 2, .ep = 2},
                             .schedule = one_microbatch,
                             .recipe = recipe,
                             .cluster = clusters::cpu};

/// A router of four experts with one rule.
template <router_rule Rule, int Picks = 2>
struct by_rule : layer {
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(x, c);
    value bias{};
    // @bias@
    if (Rule.has_bias()) bias = bias_of_choice(t, "router.bias", dim{"experts", 4}, 2, Rule, c.loss_scale);
    const routing routed = route(logits_of(t, h), Picks, Rule, bias);  // @rule@
    const arrangement by = arrange(routed.chosen, 4);
    return x + leave_tp(combine(experts(t, dispatch(h, by), by), routed.weights, by), c);
  }
};
inline constexpr auto groups_of_two_sizes =
    layered<by_rule<router_rule{.groups = fault(3, 2), .groups_taken = 1, .group_best = 1}>>;
// error: RC210: experts.cpp:@rule@: route: 4 experts do not divide into 3 groups; expected groups of one size
static_assert(valid<groups_of_two_sizes>);
inline constexpr auto more_groups_than_there_are =
    layered<by_rule<router_rule{.groups = 2, .groups_taken = fault(3, 2)}>>;
// error: RC210: experts.cpp:@rule@: keep_groups: it takes 3 of 2 groups; expected at least 1, and no more
//        than there are
static_assert(valid<more_groups_than_there_are>);
inline constexpr auto groups_scored_by_more_than_they_have =
    layered<by_rule<router_rule{.groups = 2, .groups_taken = 1, .group_best = fault(3, 2)}>>;
// error: RC210: experts.cpp:@rule@: keep_groups: it scores a group by its 3 best experts; expected at least
//        1, and no more than the 2 of a group
static_assert(valid<groups_scored_by_more_than_they_have>);
inline constexpr auto more_picks_than_their_groups_have =
    layered<by_rule<router_rule{.groups = 2, .groups_taken = 1}, fault(3, 2)>>;
// error: RC210: experts.cpp:@rule@: route: it takes 3 experts, and the 1 groups that it takes have 2;
//        expected no more
static_assert(valid<more_picks_than_their_groups_have>);
inline constexpr auto a_bias_that_falls = layered<by_rule<router_rule{.bias_rate = fault(-0.001, 0.001)}>>;
// error: RC210: experts.cpp:@bias@: parameter 'router.bias': its rate is -1e-3; expected a positive number,
//        at most 1: 0.001 is usual
static_assert(valid<a_bias_that_falls>);
constexpr auto with_bias(training by) {
  return plan{.model = around<by_rule<router_rule{.bias_rate = 0.001}>>{},
              .dims = parallel_dims{.world = 2, .dp_shard = 2},
              .schedule = one_microbatch,
              .recipe = by,
              .cluster = clusters::cpu};
}
inline constexpr auto a_bias_in_bf16 = with_bias({.seq = 8,
                                                  .global_batch = 4,
                                                  .precision = bf16,
                                                  .master_weights = fault(false, true),
                                                  .rounding = fault(stochastic, nearest)});
// error: RC210: experts.cpp:@bias@: parameter 'router.bias': it is kept in bf16 alone, in which steps of 1e-3
//        are lost; take master_weights=true, or leave out the bias
static_assert(valid<a_bias_in_bf16>);
inline constexpr auto choices_in_bf16 =
    with_bias({.seq = 8, .global_batch = 4, .precision = bf16, .reductions = fault(bf16, f32)});
// error: RC210: experts.cpp:@bias@: parameter 'router.bias': numbers of choices are summed in bf16, which has
//        whole numbers up to 256; leave out reductions=bf16, or the bias
static_assert(valid<choices_in_bf16>);

constexpr value own_experts(trace& t, std::string_view name) {
  return t.parameter(name, {all, ffn}, {{axis::ep, all.name}}, initial::normal, 0.02);  // @own_weight@
}
/// The mistake that the layers below make, if any.
enum class mistake {
  none,
  whole_experts,
  own_slots,
  own_offsets,
  sent_twice,
  sent_back_offsets,
  gathered,
  frozen_experts
};
template <mistake Made>
struct exchanging : layer {
  static constexpr mistake made = faulty ? Made : mistake::none;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const routing routed = route(logits_of(t, x), 2, {});
    const arrangement slots = arrange(routed.chosen, 4);
    value rows = dispatch(x, slots);
    const dim own = t.of(rows).shape[0], from_all = received_slots(own, 4, c.ep, c.token_ranks, {});
    const value shared = share_offsets(slots.offsets, from_all);
    const arrangement there{slots.places, made == mistake::own_offsets ? slots.offsets : shared};
    // @sends@
    value sent = to_experts(rows, made == mistake::sent_back_offsets ? shared : slots.offsets, from_all);
    if (made == mistake::sent_twice) sent = to_experts(sent, slots.offsets, from_all);  // @sends_again@
    if (made == mistake::gathered) sent = all_gather(sent, axis::ep, hidden.name);      // @gathers@
    value up = made == mistake::whole_experts ? weight(t, "up") : own_experts(t, "up");
    if (made == mistake::frozen_experts) up = frozen(up);
    value act = gelu(expert_up(made == mistake::own_slots ? rows : sent, up, there));  // @own_experts@
    value down = expert_down(act, own_experts(t, "down"), there);
    return x + combine(from_experts(down, slots.offsets, own), routed.weights, slots);
  }
};
inline constexpr auto whole_experts_of_received_slots = spread<exchanging<mistake::whole_experts>>;
// error: RC210: experts.cpp:@own_experts@: expert_up 'up': the weight is invariant (I) over ep; expected the
//        rank's own experts, as the slots are of these: shard it along its experts over ep
static_assert(valid<whole_experts_of_received_slots>);
inline constexpr auto own_experts_of_own_tokens = spread<exchanging<mistake::own_slots>>;
// error: RC210: experts.cpp:@own_experts@: expert_up 'up': the value is invariant (I) over ep; expected slots
//        of the rank's own experts, as the weight is of these: exchange them first (to_experts)
static_assert(valid<own_experts_of_own_tokens>);
inline constexpr auto offsets_of_own_tokens = spread<exchanging<mistake::own_offsets>>;
// error: RC210: experts.cpp:@own_experts@: expert_up 'up': the offset table is invariant (I) over ep;
//        expected that of the slots: exchange both, or neither
static_assert(valid<offsets_of_own_tokens>);
inline constexpr auto slots_sent_twice = spread<exchanging<mistake::sent_twice>>;
// error: RC210: experts.cpp:@sends_again@: to_experts: the value is different on each rank (V) over ep;
//        expected slots of the rank's own tokens (I): there is nothing to exchange
static_assert(valid<slots_sent_twice>);
inline constexpr auto offsets_of_received_slots = spread<exchanging<mistake::sent_back_offsets>>;
// error: RC210: experts.cpp:@sends@: to_experts: the offset table is different on each rank (V) over ep;
//        expected that of the rank's own tokens: give it that of arrange
static_assert(valid<offsets_of_received_slots>);
inline constexpr auto a_gather_over_ep = spread<exchanging<mistake::gathered>>;
// error: RC210: experts.cpp:@gathers@: all_gather: it is over ep, whose ranks have tokens and experts of
//        their own; exchange slots of tokens over it (to_experts)
static_assert(valid<a_gather_over_ep>);
inline constexpr auto frozen_experts_on_other_ranks = spread<exchanging<mistake::frozen_experts>>;
// error: RC226: experts.cpp:@own_weight@: parameter 'up': it is frozen and sharded over ep=2; this version
//        trains the experts that it spreads over ranks: train it, or take ep=1
static_assert(valid<frozen_experts_on_other_ranks>);

constexpr models::mixtral four_experts{.layers = 4,
                                       .hidden = 32,
                                       .heads = 4,
                                       .kv_heads = 4,
                                       .experts = 4,
                                       .top_k = 2,
                                       .expert_ffn = 16,
                                       .vocab = 64};
constexpr auto over_ranks(const parallel_dims& right, auto change,
                          const models::mixtral& model = four_experts, const training& by = recipe) {
  parallel_dims d = right;
  if (faulty) change(d);
  return plan{.model = model, .dims = d, .schedule = one_microbatch, .recipe = by, .cluster = clusters::cpu};
}
constexpr parallel_dims four_ranks{.world = 4, .dp_shard = 4, .ep = 4},
    with_tp{.world = 4, .dp_shard = 2, .tp = 2, .ep = 4, .sequence_parallel = true},
    with_cp{.world = 4, .dp_shard = 2, .cp = 2, .ep = 4};
inline constexpr auto experts_over_more_than_a_replica = over_ranks(four_ranks, [](parallel_dims& d) {
  d.dp_replicate = 2;
  d.dp_shard = 2;
});
// error: RC108: ep * etp = 4 does not divide the ranks that experts are spread over, 2 (dp_shard * cp * tp):
//        take ep=1 or ep=2, or dp_shard=4 (with dp_replicate=infer), or expert_layout=folded_over_replicas
static_assert(valid<experts_over_more_than_a_replica>);
inline constexpr auto whole_tokens_on_tp =
    over_ranks(with_tp, [](parallel_dims& d) { d.sequence_parallel = false; });
// error: RC103: ep=4 with tp=2 and without sequence_parallel is not lowered in this version, because each
//        rank of tp would send the same tokens to the experts: set sequence_parallel=true, or tp=1
static_assert(valid<whole_tokens_on_tp>);
inline constexpr auto whole_weights_on_cp = over_ranks(with_cp, [](parallel_dims& d) {
  d.dp_replicate = 2;
  d.dp_shard = 1;
  d.cp_weights = cp_weights::replicate;
  d.ep = 2;
});
// error: RC103: cp_weights=replicate with ep=2 and dp_replicate=2 is not lowered in this version, because
//        ranks of cp have different experts and replicas have the same: set cp_weights=shard, or
//        expert_layout=folded_over_replicas
static_assert(valid<whole_weights_on_cp>);
inline constexpr auto six_experts_on_four_ranks = over_ranks(
    four_ranks, [](parallel_dims&) {},
    [] {
      models::mixtral m = four_experts;
      if (faulty) m.experts = 6;
      return m;
    }());
// error: RC209: experts=6 does not divide by ep=4: take ep=1 or ep=2, or experts=4 or experts=8
static_assert(valid<six_experts_on_four_ranks>);
inline constexpr auto rows_over_three_ranks =
    over_ranks({.world = 6, .dp_replicate = 3, .dp_shard = 2, .ep = 2},
               [](parallel_dims& d) {
                 d.dp_replicate = 1;
                 d.dp_shard = 6;
               },
               four_experts, {.seq = 8, .global_batch = 12});
// error: RC240: parameter 'experts.gate' has 64 rows on each rank of ep=2, and they do not divide by the 3
//        ranks that share these out, dp_shard * cp * tp / ep (dp_replicate takes the rest): take dp_shard=2
static_assert(valid<rows_over_three_ranks>);
inline constexpr auto rows_over_three_replicas =
    over_ranks({.world = 6, .dp_replicate = 3, .dp_shard = 2, .ep = 2},
               [](parallel_dims& d) { d.expert_layout = expert_layout::folded_over_replicas; }, four_experts,
               {.seq = 8, .global_batch = 12});
// error: RC240: parameter 'experts.gate' has 64 rows on each rank of ep=2, and they do not divide by the 3
//        ranks that share these out, dp_replicate * dp_shard * cp * tp / ep: take expert_layout=folded
static_assert(valid<rows_over_three_replicas>);
