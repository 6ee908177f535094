// SPDX-License-Identifier: Apache-2.0
// RC2xx that judge a plan before its layers: sizes, stages, batches, declared inputs. RC202 judges traced
// shapes too.
#include "reject.hpp"

#include <array>

inline constexpr models::gpt2 gpt{.layers = 2, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64};

constexpr auto modelled(auto model, parallel_dims dims = {}, training r = recipe,
                        schedules::gpipe schedule = one_microbatch) {
  return plan{.model = model, .dims = dims, .schedule = schedule, .recipe = r, .cluster = clusters::cpu};
}

inline constexpr auto rc201_more_stages_than_layers =
    modelled(gpt, {.world = fault(8, 4), .pp = fault(8, 4)});
// error: RC201: layers=2, with those that stand alone before or after them, cannot fill 8 stages: take pp=2
//        or pp=4 (with dp_replicate=infer), or layers=6 or layers=7
static_assert(valid<rc201_more_stages_than_layers>);

inline constexpr models::gpt2 no_layers{
    .layers = fault(0, 1), .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64};
inline constexpr auto rc201_no_layers = modelled(no_layers);
// error: RC201: layers=0 cannot fill 1 stages: take layers=1 or layers=2
static_assert(valid<rc201_no_layers>);

inline constexpr models::llama llama_for_tp3{
    .layers = 1, .hidden = 48, .heads = 6, .kv_heads = fault(2, 3), .ffn = 66, .vocab = 66};
inline constexpr auto rc202_heads_over_tp = modelled(llama_for_tp3, {.world = 3, .tp = 3});
// error: RC202: kv_heads=2 does not divide by tp=3 (they are not replicated in this version): take tp=1 (with
//        dp_replicate=infer), or kv_heads=3 or kv_heads=6
static_assert(valid<rc202_heads_over_tp>);

inline constexpr models::gpt2 gpt_vocab{
    .layers = 1, .hidden = 32, .heads = 4, .ffn = 64, .vocab = fault(257, 258), .vocab_used = 257};
inline constexpr auto rc202_vocab_over_tp = modelled(gpt_vocab, {.world = 2, .tp = 2});
// error: RC202: vocab=257 does not divide by tp=2: take tp=1 (with dp_replicate=infer), or vocab=258 with
//        vocab_used=257
static_assert(valid<rc202_vocab_over_tp>);

inline constexpr auto rc202_tokens_over_tp =
    modelled(gpt, {.world = 4, .tp = 4, .sequence_parallel = true}, {.seq = fault(7, 8), .global_batch = 1});
// error: RC202: tokens=7 does not divide by tp=4: take seq=4 or seq=8
static_assert(valid<rc202_tokens_over_tp>);

inline constexpr models::gpt2 gpt_ffn{
    .layers = 1, .hidden = 32, .heads = 4, .ffn = fault(66, 64), .vocab = 64};
inline constexpr auto rc240_rows_over_shards =
    modelled(gpt_ffn, {.world = 4, .dp_shard = 2, .tp = 2}, {.seq = 8, .global_batch = 2});
// error: RC240: parameter 'w1' has 33 rows on each rank of tp=2, and they do not divide by dp_shard=2
//        (dp_replicate takes the rest): take dp_shard=1, or ffn=64 or ffn=68
static_assert(valid<rc240_rows_over_shards>);

inline constexpr auto rc240_rows_over_cp =
    modelled(gpt_ffn, {.world = 4, .cp = 2, .tp = 2}, {.seq = 8, .global_batch = 2});
// error: RC240: parameter 'w1' has 33 rows on each rank of tp=2, and they do not divide by dp_shard=1 * cp=2
//        (dp_replicate takes the rest): take ffn=64 or ffn=68, or cp_weights=replicate
static_assert(valid<rc240_rows_over_cp>);

inline constexpr models::gpt2 ragged_heads{
    .layers = 1, .hidden = 32, .heads = fault(5, 8), .ffn = 64, .vocab = 64};
inline constexpr auto rc203_hidden_over_heads = modelled(ragged_heads);
// error: RC203: hidden=32 does not divide into heads=5: take heads=2 or heads=4, or hidden=30 or hidden=35
static_assert(valid<rc203_hidden_over_heads>);

inline constexpr models::llama ragged_groups{
    .layers = 1, .hidden = 32, .heads = 4, .kv_heads = fault(3, 2), .ffn = 64, .vocab = 64};
inline constexpr auto rc204_heads_over_kv_heads = modelled(ragged_groups);
// error: RC204: heads=4 is not a multiple of kv_heads=3: take kv_heads=2 or kv_heads=4
static_assert(valid<rc204_heads_over_kv_heads>);

inline constexpr models::llama odd_heads{
    .layers = 1, .hidden = fault(28, 32), .heads = 4, .kv_heads = 2, .ffn = 64, .vocab = 64};
inline constexpr auto rc205_odd_head_dim = modelled(odd_heads);
// error: RC205: head_dim=7 is odd, but rotary positions rotate pairs of elements: take hidden=24 or
//        hidden=32, or heads=2 or heads=14
static_assert(valid<rc205_odd_head_dim>);

inline constexpr models::gpt2 no_ffn{.layers = 1, .hidden = 32, .heads = 4, .ffn = fault(0, 1), .vocab = 64};
inline constexpr auto rc206_size_zero = modelled(no_ffn);
// error: RC206: ffn=0; a size is at least 1
static_assert(valid<rc206_size_zero>);

inline constexpr models::gpt2 used_up{
    .layers = 1, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64, .vocab_used = fault(65, 64)};
inline constexpr auto rc207_more_used_than_there_are = modelled(used_up);
// error: RC207: vocab_used=65 of vocab=64 tokens; it can be 1 to 64, or 0 for all: take vocab_used=63 or
//        vocab_used=64, or vocab=65 or vocab=66
static_assert(valid<rc207_more_used_than_there_are>);

/// A mixture of experts without layers: its sizes and dims are judged as usual.
struct sized {
  model_sizes sizes;
  parallel_dims dims;
  constexpr report diagnose() const {
    report out;
    check_model(out, sizes, dims);
    return out;
  }
};
inline constexpr parallel_dims four_expert_ranks{.world = 8, .dp_shard = 8, .ep = 4};

inline constexpr sized rc208_expert_ranks_without_experts{{.experts = fault(0, 8)}, four_expert_ranks};
// error: RC208: ep=4, but the model has no experts: take ep=1, or experts=4 or experts=8
static_assert(valid<rc208_expert_ranks_without_experts>);

inline constexpr sized rc209_experts_over_ep{{.experts = fault(6, 8)}, four_expert_ranks};
// error: RC209: experts=6 does not divide by ep=4: take ep=1 or ep=2, or experts=4 or experts=8
static_assert(valid<rc209_experts_over_ep>);

inline constexpr sized rc215_more_than_all_experts{{.experts = 8, .top_k = fault(9, 2)}, four_expert_ranks};
// error: RC215: top_k=9 is more than experts=8: take top_k=7 or top_k=8, or experts=12 or experts=16
static_assert(valid<rc215_more_than_all_experts>);

inline constexpr sized rc216_sequence_over_rings{{.seq = fault(1000, 1024)},
                                                 {.world = 16, .cp = 4, .tp = 4, .sequence_parallel = true}};
// error: RC216: seq=1000 does not divide by 16 = cp(4) * lcm(2, tp(4)): take cp=1 or cp=2 (with
//        dp_replicate=infer), or tp=1 or tp=2 (with dp_replicate=infer), or seq=992 or seq=1008
static_assert(valid<rc216_sequence_over_rings>);

inline constexpr plan rc217_stage_without_a_layer{.model = gpt,
                                                  .dims = parallel_dims{.world = 3, .pp = 3},
                                                  .schedule = one_microbatch,
                                                  .recipe = recipe,
                                                  .cluster = clusters::cpu,
                                                  .stage_layers = stage_layers{fault(2, 1), fault(0, 1), 0}};
// error: RC217: stage_layers has 0 layers on stage 1; a stage where none stands alone has at least 1
static_assert(valid<rc217_stage_without_a_layer>);

inline constexpr plan rc217_stages_of_other_layers{.model = gpt,
                                                   .dims = parallel_dims{.world = 2, .pp = 2},
                                                   .schedule = one_microbatch,
                                                   .recipe = recipe,
                                                   .cluster = clusters::cpu,
                                                   .stage_layers = stage_layers{1, fault(2, 1)}};
// error: RC217: stage_layers sum to 3, not to layers=2: take 1 on stage 1, or layers=3
static_assert(valid<rc217_stages_of_other_layers>);

inline constexpr auto rc220_no_tokens = modelled(gpt, {}, {.seq = fault(0, 8), .global_batch = 4});
// error: RC220: seq=0; a sequence has at least 1 token
static_assert(valid<rc220_no_tokens>);

inline constexpr auto rc221_batch_over_microbatches = modelled(
    gpt, {.world = 2, .dp_replicate = 2}, {.seq = 8, .global_batch = fault(8, 12)}, {.microbatches = 3});
// error: RC221: global_batch=8 does not divide into 3 microbatches on 2 data-parallel ranks: take
//        global_batch=6 or global_batch=12, or microbatches=2 or microbatches=4
static_assert(valid<rc221_batch_over_microbatches>);

inline constexpr auto rc222_too_many_tokens =
    modelled(gpt, {}, {.seq = fault(1'048'576, 8), .global_batch = 2048});
// error: RC222: a step has 2147483648 tokens; they are counted up to 2147483647: take global_batch=2046 or
//        global_batch=2047
static_assert(valid<rc222_too_many_tokens>);

// ---- the inputs of a step

/// A head that reads an input by name.
struct reading_head {
  static constexpr std::string_view name = "reading_head";
  std::string_view labels;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const value table =
        t.parameter("out", {dim{"vocab", 64}, dim{"hidden", 32}}, {{axis::tp, "vocab"}}, initial::ones);
    const value logits = linear(enter_tp(x, c), table);
    return cross_entropy(logits, c.input(labels), axis::tp, c.loss_scale);  // @labels@
  }
};
struct reading {
  named_input declared;
  std::string_view labels = "labels";
  int vocab = 64, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto inputs() const {
    named_input first = declared;
    if (first.holds == element::index) first.below = 64;
    return std::array{first, named_input{"ages", element::wide}};
  }
  constexpr auto stack() const {
    return sequential(models::embedding{token_table(dim{"vocab", 64}, dim{"hidden", 32})},
                      reading_head{labels});
  }
};

inline constexpr auto rc210_unknown_input = modelled(reading{{"labels"}, fault("label", "labels")});
// error: RC210: model.cpp:@labels@: input 'label': the layer gets no input of this name; its inputs are
//        targets, labels, ages
static_assert(valid<rc210_unknown_input>);

inline constexpr auto rc210_tokens_after_the_first_layer =
    modelled(reading{{"labels"}, fault("tokens", "labels")});
// error: RC210: model.cpp:@labels@: input 'tokens': the layer gets no input of this name; its inputs are
//        targets, labels, ages
static_assert(valid<rc210_tokens_after_the_first_layer>);

inline constexpr auto rc266_no_identifier = modelled(reading{{fault("all labels", "labels")}, "targets"});
// error: RC266: the model declares the input 'all labels'; the name of an input has letters, digits and '_',
//        and begins with no digit
static_assert(valid<rc266_no_identifier>);

inline constexpr auto rc266_input_of_the_language =
    modelled(reading{{fault("targets", "labels")}, "targets"});
// error: RC266: the model declares the input 'targets', and another input of the step has this name; take
//        another one
static_assert(valid<rc266_input_of_the_language>);

inline constexpr auto rc266_starts = modelled(reading{{fault("starts", "labels")}, "targets"});
// error: RC266: the model declares the input 'starts', and another input of the step has this name; take
//        another one
static_assert(valid<rc266_starts>);

inline constexpr auto rc266_input_twice = modelled(reading{{fault("ages", "labels")}, "targets"});
// error: RC266: the model declares the input 'ages', and another input of the step has this name; take
//        another one
static_assert(valid<rc266_input_twice>);

inline constexpr auto rc266_in_eight_bits =
    modelled(reading{{"labels", fault(element::e4m3, element::index)}, "targets"});
// error: RC266: the model declares the input 'labels' in fp8; take element::index, element::wide or
//        element::real (the plan's precision)
static_assert(valid<rc266_in_eight_bits>);

constexpr auto with_heads(int heads, const cluster& machines) {
  return plan{.model = models::gpt2{.layers = 1, .hidden = 512, .heads = heads, .ffn = 64, .vocab = 64},
              .schedule = one_microbatch,
              .recipe = recipe,
              .cluster = machines};
}
inline constexpr auto wide_heads_on_host = with_heads(2, clusters::cpu);
static_assert(valid<wide_heads_on_host>);
inline constexpr auto rc269_wide_heads = with_heads(fault(2, 4), clusters::h200<1>);
// error: RC269: a head of layer 'block' has 256 elements, and the attention kernels for GPUs take at most
//        128; take more and smaller heads, or clusters::cpu
static_assert(valid<rc269_wide_heads>);

/// A decoder whose value heads have another size than its key heads.
struct with_values {
  int value_dim, vocab = 64, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const models::decoder d{
        .sizes = {.layers = 1, .hidden = 64, .heads = 2, .ffn = 64, .vocab = vocab, .rotary = true},
        .theta = 10000};
    return sequential(d.embedding(), d.block({.value_dim = value_dim}), d.head());
  }
};
inline constexpr plan rc269_wide_value_heads{.model = with_values{fault(192, 128)},
                                             .schedule = one_microbatch,
                                             .recipe = recipe,
                                             .cluster = clusters::h200<1>};
// error: RC269: a head of layer 'block' has 192 elements, and the attention kernels for GPUs take at most
//        128; take more and smaller heads, or clusters::cpu
static_assert(valid<rc269_wide_value_heads>);
