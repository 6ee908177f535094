// SPDX-License-Identifier: Apache-2.0
// RC103, RC108, RC202, RC210, RC226, RC240: experts whose columns are sharded over several ranks.
#include "reject.hpp"

inline constexpr dim hidden{"hidden", 32}, ffn{"ffn", 16}, all{"experts", 4 * 32, 32, "hidden"};
inline constexpr bool faulty = fault(true, false);

/// The mistake that a layer makes, if any.
enum class mistake {
  none,
  own_slots,
  own_offsets,
  own_sums,
  whole_columns,
  columns_of_all,
  whole_back,
  gathered_early,
  gathered_twice,
  gathered_by_tokens,
  offsets_gathered_early,
  offsets_gathered_twice,
  summed_twice
};
constexpr value columns(trace& t, std::string_view name, mistake made) {
  if (made == mistake::whole_columns)
    // @whole@
    return t.parameter(name, {all, ffn}, {{axis::ep, all.name}}, initial::normal, 0.02);
  if (made == mistake::columns_of_all)
    return t.parameter(name, {all, ffn}, {{axis::etp, ffn.name}}, initial::normal, 0.02);
  return t.parameter(name, {all, ffn}, {{axis::ep, all.name}, {axis::etp, ffn.name}}, initial::normal, 0.02);
}
template <mistake Made>
struct exchanging {
  static constexpr std::string_view name = "mine";
  static constexpr mistake made = faulty ? Made : mistake::none;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const value logits =
        linear(x, t.parameter("router", {dim{"experts", 4}, hidden}, {}, initial::normal, 0.02));
    const routing routed = route(logits, 2, {});
    const arrangement slots = arrange(routed.chosen, 4);
    value rows = dispatch(x, slots);
    const dim own = t.of(rows).shape[0], from_all = received_slots(own, 4, c.ep, c.token_ranks, {}),
              gathered = gathered_slots(from_all, c.etp);
    value shared = share_offsets(slots.offsets, from_all);
    value offsets =
        // @offsets@
        gather_offsets(made == mistake::offsets_gathered_early ? slots.offsets : shared, gathered, c.etp);
    // @offsets_again@
    if (made == mistake::offsets_gathered_twice) offsets = gather_offsets(offsets, gathered, c.etp);
    const arrangement there{slots.places, made == mistake::own_offsets ? shared : offsets};
    value sent = to_experts(rows, slots.offsets, from_all);
    value of_all = gather_slots(made == mistake::gathered_early ? rows : sent, gathered);  // @gathers@
    // @gathers_rows@
    if (made == mistake::gathered_by_tokens) of_all = all_gather(sent, axis::etp, hidden.name);
    if (made == mistake::gathered_twice) of_all = gather_slots(of_all, gathered);  // @gathers_again@
    value up = expert_up(made == mistake::own_slots ? sent : of_all, columns(t, "up", made), there);  // @up@
    value down = expert_down(gelu(up), columns(t, "down", made), there);
    value back = down;
    if (made != mistake::own_sums)
      back = scatter_slots(made == mistake::whole_back ? of_all : down, from_all);      // @scatters@
    if (made == mistake::summed_twice) back = scatter_slots(back, from_all);            // @scatters_again@
    return x + combine(from_experts(back, slots.offsets, own), routed.weights, slots);  // @back@
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
template <mistake Made>
inline constexpr plan spread{.model = around<exchanging<Made>>{},
                             .dims = parallel_dims{.world = 4, .dp_shard = 4, .ep = 2, .etp = 2},
                             .schedule = one_microbatch,
                             .recipe = recipe,
                             .cluster = clusters::cpu};

inline constexpr auto columns_of_own_slots = spread<mistake::own_slots>;
// error: RC210: columns.cpp:@up@: expert_up 'up': the value is invariant (I) over etp; expected slots of all
//        ranks that have columns of the weight (R): gather them first (gather_slots)
static_assert(valid<columns_of_own_slots>);
inline constexpr auto offsets_of_own_slots = spread<mistake::own_offsets>;
// error: RC210: columns.cpp:@up@: expert_up 'up': the offset table is invariant (I) over etp; expected that
//        of the slots: gather both, or neither
static_assert(valid<offsets_of_own_slots>);
inline constexpr auto sums_that_are_left_out = spread<mistake::own_sums>;
// error: RC210: columns.cpp:@back@: from_experts: the value is a pending sum (P) over etp; expected slots
//        that the rank itself sends or received (I): sum them up first (scatter_slots)
static_assert(valid<sums_that_are_left_out>);
inline constexpr auto columns_that_all_have = spread<mistake::columns_of_all>;
// error: RC210: columns.cpp:@up@: expert_up 'up': the weight is invariant (I) over ep; expected the rank's
//        own experts, as the slots are of these: shard it along its experts over ep
static_assert(valid<columns_that_all_have>);
inline constexpr auto whole_slots_that_go_back = spread<mistake::whole_back>;
// error: RC210: columns.cpp:@scatters@: scatter_slots: the value is replicated (R) over etp; expected a
//        pending sum (P): there is nothing to reduce
static_assert(valid<whole_slots_that_go_back>);
inline constexpr auto slots_gathered_before_they_are_sent = spread<mistake::gathered_early>;
// error: RC210: columns.cpp:@gathers@: gather_slots: the value is invariant (I) over ep; expected slots of
//        the rank's own experts (V): exchange them first (to_experts)
static_assert(valid<slots_gathered_before_they_are_sent>);
inline constexpr auto slots_gathered_twice = spread<mistake::gathered_twice>;
// error: RC210: columns.cpp:@gathers_again@: gather_slots: the value is replicated (R) over etp; expected
//        slots that the rank itself received (I): there is nothing to gather
static_assert(valid<slots_gathered_twice>);
inline constexpr auto a_gather_over_etp = spread<mistake::gathered_by_tokens>;
// error: RC210: columns.cpp:@gathers_rows@: all_gather: it is over etp, whose ranks have received slots of
//        their own; gather these over it (gather_slots)
static_assert(valid<a_gather_over_etp>);
inline constexpr auto offsets_gathered_before_they_are_shared = spread<mistake::offsets_gathered_early>;
// error: RC210: columns.cpp:@offsets@: gather_offsets: the offset table is invariant (I) over ep; expected
//        that of the slots that the rank received (V): exchange it first (share_offsets)
static_assert(valid<offsets_gathered_before_they_are_shared>);
inline constexpr auto offsets_gathered_twice = spread<mistake::offsets_gathered_twice>;
// error: RC210: columns.cpp:@offsets_again@: gather_offsets: the offset table is replicated (R) over etp;
//        expected that of the slots that the rank itself received (I): there is nothing to gather
static_assert(valid<offsets_gathered_twice>);
inline constexpr auto sums_scattered_twice = spread<mistake::summed_twice>;
// error: RC210: columns.cpp:@scatters_again@: scatter_slots: the value is invariant (I) over etp; expected a
//        pending sum (P): there is nothing to reduce
static_assert(valid<sums_scattered_twice>);

/// A layer without etp's conversions.
struct by_experts_alone {
  static constexpr std::string_view name = "mine";
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const value logits =
        linear(x, t.parameter("router", {dim{"experts", 4}, hidden}, {}, initial::normal, 0.02));
    const routing routed = route(logits, 2, {});
    const arrangement slots = arrange(routed.chosen, 4);
    value rows = dispatch(x, slots);
    const dim own = t.of(rows).shape[0], from_all = received_slots(own, 4, c.ep, c.token_ranks, {});
    const arrangement there{slots.places, share_offsets(slots.offsets, from_all)};
    value up =
        expert_up(to_experts(rows, slots.offsets, from_all), columns(t, "up", mistake::whole_columns), there);
    value down = expert_down(gelu(up), columns(t, "down", mistake::whole_columns), there);
    return x + combine(from_experts(down, slots.offsets, own), routed.weights, slots);
  }
};
inline constexpr plan whole_columns_over_etp{
    .model = around<by_experts_alone>{},
    .dims = parallel_dims{.world = 4, .dp_shard = 4, .ep = fault(2, 4), .etp = fault(2, 1)},
    .schedule = one_microbatch,
    .recipe = recipe,
    .cluster = clusters::cpu};
// error: RC226: columns.cpp:@whole@: parameter 'up': it is invariant (I) over etp=2; with experts sharded
//        over ep, this version shards their columns over etp, and no other parameter
static_assert(valid<whole_columns_over_etp>);

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
constexpr parallel_dims four_ranks{.world = 4, .dp_shard = 4, .ep = 2, .etp = 2},
    with_tp{.world = 4, .dp_shard = 2, .tp = 2, .ep = 2, .etp = 2, .sequence_parallel = true};
inline constexpr auto columns_of_experts_on_all_ranks =
    over_ranks(four_ranks, [](parallel_dims& d) { d.ep = 1; });
// error: RC103: etp=2 with ep=1 and tp=1 is not lowered in this version; experts that are on all ranks are
//        split over tp: set etp=1, or ep above 1
static_assert(valid<columns_of_experts_on_all_ranks>);
inline constexpr auto columns_over_other_ranks_than_tp =
    over_ranks({.world = 4, .tp = 4, .etp = 4}, [](parallel_dims& d) { d.etp = 2; });
// error: RC103: etp=2 with ep=1 and tp=4 is not lowered in this version; experts that are on all ranks are
//        split over tp: set etp=4, or ep above 1
static_assert(valid<columns_over_other_ranks_than_tp>);
inline constexpr auto columns_of_tokens_that_ranks_repeat =
    over_ranks(with_tp, [](parallel_dims& d) { d.sequence_parallel = false; });
// error: RC103: ep=2 with tp=2 and without sequence_parallel is not lowered in this version, because each
//        rank of tp would send the same tokens to the experts: set sequence_parallel=true, or tp=1
static_assert(valid<columns_of_tokens_that_ranks_repeat>);
inline constexpr auto columns_of_three = over_ranks(
    {.world = 6, .dp_shard = 6, .ep = 2, .etp = 3}, [](parallel_dims&) {},
    [] {
      models::mixtral m = four_experts;
      m.expert_ffn = fault(16, 15);
      return m;
    }(),
    {.seq = 8, .global_batch = 12});
// error: RC202: ffn=16 does not divide by etp=3: take etp=1, or ffn=15 or ffn=18
static_assert(valid<columns_of_three>);
inline constexpr auto rows_over_the_rest =
    over_ranks({.world = 12, .dp_replicate = 3, .dp_shard = 4, .ep = 2, .etp = 2},
               [](parallel_dims& d) {
                 d.dp_replicate = 1;
                 d.dp_shard = 12;
               },
               four_experts, {.seq = 8, .global_batch = 12});
// error: RC240: parameter 'experts.gate' has 64 rows on each rank of ep=2, and they do not divide by the 3
//        ranks that share these out, dp_shard * cp * tp / (ep * etp) (dp_replicate takes the rest): take
//        dp_shard=4
static_assert(valid<rows_over_the_rest>);
