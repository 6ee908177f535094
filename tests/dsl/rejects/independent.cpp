// SPDX-License-Identifier: Apache-2.0
// RC103, RC210, RC226, RC240: experts on their own axis, whose ranks hold the same tokens.
#include "reject.hpp"

inline constexpr dim hidden{"hidden", 32}, ffn{"ffn", 16}, all{"experts", 4 * 32, 32, "hidden"};
inline constexpr bool faulty = fault(true, false);

/// The mistake that a layer makes, if any.
enum class mistake {
  none,
  own_logits,
  own_tokens,
  all_places,
  all_slots,
  all_offsets,
  own_weights,
  left_out,
  summed_twice,
  gathered,
  own_router
};
template <mistake Made>
struct owning {
  static constexpr std::string_view name = "mine";
  static constexpr mistake made = faulty ? Made : mistake::none;
  static constexpr value experts(trace& t, std::string_view name) {
    return t.parameter(name, {all, ffn}, {{axis::ep, all.name}}, initial::normal, 0.02);
  }
  constexpr value forward(trace& t, value x, const layer_context&) const {
    const value h = replicate(x, axis::ep);  // @enters@
    // @router@
    const value router = t.parameter("router", {dim{"experts", 4}, hidden}, {}, initial::normal, 0.02);
    value logits = linear(made == mistake::own_router ? h : x, router);
    if (made != mistake::own_router && made != mistake::own_logits) logits = replicate(logits, axis::ep);
    const routing routed = route(logits, 2, {});
    const arrangement slots = arrange(routed.chosen, 4), own = own_slots(slots);  // @own@
    // @dispatches@
    value rows = dispatch(made == mistake::own_tokens ? x : h, made == mistake::all_slots ? slots : own);
    value up = expert_up(rows, experts(t, "up"), made == mistake::all_offsets ? slots : own);  // @up@
    value down = expert_down(gelu(up), experts(t, "down"), own);
    const value weights =
        made == mistake::own_weights ? route(linear(x, router), 2, {}).weights : routed.weights;
    value y = combine(down, weights, made == mistake::all_places ? slots : own);  // @combines@
    if (made == mistake::gathered) y = all_gather(y, axis::ep, hidden.name);      // @gathers@
    if (made != mistake::left_out) y = all_reduce(y, axis::ep);
    if (made == mistake::summed_twice) y = all_reduce(y, axis::ep);  // @again@
    return x + y;                                                    // @adds@
  }
};
/// The same for ranks with different tokens.
struct exchanging {
  static constexpr std::string_view name = "mine";
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const routing routed = route(
        linear(x, t.parameter("router", {dim{"experts", 4}, hidden}, {}, initial::normal, 0.02)), 2, {});
    const arrangement slots = arrange(routed.chosen, 4);
    value rows = dispatch(x, slots);
    const dim own = t.of(rows).shape[0], from_all = received_slots(own, 4, c.ep, c.token_ranks, {});
    const arrangement there{slots.places, share_offsets(slots.offsets, from_all)};  // @shares@
    value up = expert_up(to_experts(rows, slots.offsets, from_all),
                         t.parameter("up", {all, ffn}, {{axis::ep, all.name}}, initial::normal, 0.02), there);
    value down = expert_down(
        gelu(up), t.parameter("down", {all, ffn}, {{axis::ep, all.name}}, initial::normal, 0.02), there);
    return x + combine(from_experts(down, slots.offsets, own), routed.weights, slots);
  }
};
template <class Layer>
struct around {
  int vocab = 64, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const parameter_handle table = token_table(dim{"vocab", 64}, hidden);
    return sequential(models::embedding{table, true}, repeat{2, Layer{}},
                      models::head{.table = table, .norm = models::norm_kind::layer});
  }
};
constexpr parallel_dims apart{.world = 2, .ep = 2, .expert_layout = expert_layout::independent},
    folded{.world = 2, .dp_shard = 2, .ep = 2};
template <mistake Made>
inline constexpr plan own{.model = around<owning<Made>>{},
                          .dims = apart,
                          .schedule = one_microbatch,
                          .recipe = recipe,
                          .cluster = clusters::cpu};

inline constexpr auto logits_that_no_rank_has_a_part_of = own<mistake::own_logits>;
// error: RC210: independent.cpp:@own@: own_slots: the table of places is invariant (I) over ep; expected that
//        of tokens that every rank of ep has (R): arrange the choice of replicated logits
static_assert(valid<logits_that_no_rank_has_a_part_of>);
inline constexpr auto tokens_that_no_rank_has_a_part_of = own<mistake::own_tokens>;
// error: RC210: independent.cpp:@dispatches@: dispatch: the value is invariant (I) over ep; expected the same
//        on every rank of ep, each of which makes a part (R): replicate it first
static_assert(valid<tokens_that_no_rank_has_a_part_of>);
inline constexpr auto places_of_all_experts = own<mistake::all_places>;
// error: RC210: independent.cpp:@combines@: combine: the left operand is different on each rank (V) and the
//        right operand replicated (R) over ep; expected one placement: shard both along the same dim, or
//        neither
static_assert(valid<places_of_all_experts>);
inline constexpr auto slots_of_all_experts = own<mistake::all_slots>;
// error: RC210: independent.cpp:@up@: expert_up 'up': the value is replicated (R) over ep; expected slots of
//        the rank's own experts, as the weight is of these: exchange them first (to_experts)
static_assert(valid<slots_of_all_experts>);
inline constexpr auto offsets_of_all_experts = own<mistake::all_offsets>;
// error: RC210: independent.cpp:@up@: expert_up 'up': the offset table is replicated (R) over ep; expected
//        that of the slots: exchange both, or neither
static_assert(valid<offsets_of_all_experts>);
inline constexpr auto weights_that_no_rank_has_a_part_of = own<mistake::own_weights>;
// error: RC210: independent.cpp:@combines@: combine: the value is invariant (I) over ep; expected the same on
//        every rank of ep, each of which makes a part (R): replicate it first
static_assert(valid<weights_that_no_rank_has_a_part_of>);
inline constexpr auto a_sum_that_is_left_out = own<mistake::left_out>;
// error: RC210: independent.cpp:@adds@: add: the right operand is a pending sum (P) over ep; expected R, I or
//        V, or two pending sums: reduce it first (all_reduce, reduce_scatter)
static_assert(valid<a_sum_that_is_left_out>);
inline constexpr auto a_sum_that_is_taken_twice = own<mistake::summed_twice>;
// error: RC210: independent.cpp:@again@: all_reduce: the value is invariant (I) over ep; expected a pending
//        sum (P): there is nothing to reduce
static_assert(valid<a_sum_that_is_taken_twice>);
inline constexpr auto a_gather_of_parts = own<mistake::gathered>;
// error: RC210: independent.cpp:@gathers@: all_gather: it is over ep, whose ranks have tokens and experts of
//        their own; exchange slots of tokens over it (to_experts)
static_assert(valid<a_gather_of_parts>);
inline constexpr auto a_router_whose_gradient_is_a_part = own<mistake::own_router>;
// error: RC226: independent.cpp:@router@: parameter 'router': its gradient is a pending sum over ep=2; this
//        version sums values over it, and no gradients of parameters: all_reduce what is made of it
static_assert(valid<a_router_whose_gradient_is_a_part>);

inline constexpr plan own_slots_of_own_tokens{.model = around<owning<mistake::none>>{},
                                              .dims = fault(folded, apart),
                                              .schedule = one_microbatch,
                                              .recipe = recipe,
                                              .cluster = clusters::cpu};
// error: RC210: independent.cpp:@enters@: replicate: it needs the same tokens on all ranks of ep=2, and each
//        has different ones; exchange slots of tokens (to_experts), or take expert_layout=independent
static_assert(valid<own_slots_of_own_tokens>);
inline constexpr plan an_exchange_of_the_same_tokens{.model = around<exchanging>{},
                                                     .dims = fault(apart, folded),
                                                     .schedule = one_microbatch,
                                                     .recipe = recipe,
                                                     .cluster = clusters::cpu};
// error: RC210: independent.cpp:@shares@: share_offsets: it sends tokens over ep=2, whose ranks have the same
//        tokens (expert_layout=independent); take own_slots, and all-reduce the combined result
static_assert(valid<an_exchange_of_the_same_tokens>);

/// The same on tp ranks, between layers that shard the tokens over tp. If faulty, each rank has all tokens.
struct embedding_of {
  static constexpr std::string_view name = "embedding";
  parameter_handle table;
  constexpr value forward(trace& t, value ids, const layer_context& c) const {
    const value words = embedding(ids, t.parameter(table));
    return faulty ? words : leave_tp(words, c);
  }
};
struct head_of {
  static constexpr std::string_view name = "head";
  parameter_handle table;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    return cross_entropy(linear(faulty ? x : enter_tp(x, c), t.parameter(table)), c.input("targets"),
                         axis::tp, c.loss_scale);
  }
};
struct on_tp {
  int vocab = 64, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const dim words{"vocab", 64};
    const parameter_handle table = faulty
                                       ? parameter_handle{"wte", {words, hidden}, {}, initial::normal, 0.02}
                                       : token_table(words, hidden);
    return sequential(embedding_of{table}, repeat{2, exchanging{}}, head_of{table});
  }
};
inline constexpr plan an_exchange_of_whole_tokens{
    .model = on_tp{},
    .dims = parallel_dims{.world = 2, .tp = 2, .ep = 2, .sequence_parallel = true},
    .schedule = one_microbatch,
    .recipe = recipe,
    .cluster = clusters::cpu};
// error: RC210: independent.cpp:@shares@: share_offsets: it sends tokens over ep=2, and the 2 ranks of tp
//        have the same tokens; expected a shard on each, as with sequence_parallel (V): let the layers before
//        leave tp (leave_tp), or take tp=1
static_assert(valid<an_exchange_of_whole_tokens>);

constexpr auto over_ranks(parallel_dims d, auto change, int experts = 4) {
  if (faulty) change(d);
  return plan{.model = models::mixtral{.layers = 4,
                                       .hidden = 32,
                                       .heads = 4,
                                       .kv_heads = 4,
                                       .experts = experts,
                                       .top_k = 2,
                                       .expert_ffn = 16,
                                       .vocab = 64},
              .dims = d,
              .schedule = one_microbatch,
              .recipe = training{.seq = 8, .global_batch = 12},
              .cluster = clusters::cpu};
}
constexpr expert_layout independent = expert_layout::independent;
inline constexpr auto columns_of_independent_experts =
    over_ranks({.world = 4, .tp = 2, .ep = 2, .sequence_parallel = true, .expert_layout = independent},
               [](parallel_dims& d) { d.etp = 2; });
// error: RC103: expert_layout=independent with etp=2 is not lowered in this version: set etp=1, or
//        expert_layout=folded
static_assert(valid<columns_of_independent_experts>);
inline constexpr auto whole_weights_on_cp =
    over_ranks({.world = 4, .cp = 2, .ep = 2, .expert_layout = independent},
               [](parallel_dims& d) { d.cp_weights = cp_weights::replicate; });
// error: RC103: expert_layout=independent with cp_weights=replicate and cp=2 is not lowered in this version:
//        set cp_weights=shard, or expert_layout=folded
static_assert(valid<whole_weights_on_cp>);
inline constexpr auto whole_tokens_on_tp =
    over_ranks({.world = 4, .tp = 2, .ep = 2, .sequence_parallel = true, .expert_layout = independent},
               [](parallel_dims& d) { d.sequence_parallel = false; });
// error: RC103: ep=2 with tp=2 and without sequence_parallel is not lowered in this version, because each
//        rank of tp would send the same tokens to the experts: set sequence_parallel=true, or tp=1
static_assert(valid<whole_tokens_on_tp>);
inline constexpr auto rows_over_three_ranks =
    over_ranks({.world = 6, .dp_replicate = 3, .ep = 2, .expert_layout = independent}, [](parallel_dims& d) {
      d.dp_replicate = 1;
      d.dp_shard = 3;
    });
// error: RC240: parameter 'experts.gate' has 64 rows on each rank of ep=2, and they do not divide by the 3
//        ranks that share these out, dp_shard * cp * tp (dp_replicate takes the rest): take dp_shard=1
static_assert(valid<rows_over_three_ranks>);
