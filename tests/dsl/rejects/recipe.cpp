// SPDX-License-Identifier: Apache-2.0
// RC233 to RC239, RC241 to RC249, RC264, RC265, RC267, RC270: numbers out of range, recomputation of nothing,
// state that no optimizer keeps, an optimizer of matrices, and parameters that do not exist, or cannot be
// adapted or trained.
#include "reject.hpp"

#include <rankc/models/glm4.hpp>
#include <rankc/schedules/looped_bfs.hpp>

#include <limits>

inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr auto trained(training r) {
  return plan{.model = models::gpt2{.layers = 1, .hidden = 8, .heads = 2, .ffn = 8, .vocab = 8},
              .schedule = one_microbatch,
              .recipe = r,
              .cluster = clusters::cpu};
}

inline constexpr auto rc233_negative_rate = trained({.seq = 8, .global_batch = 4, .lr = fault(-3e-4, 0.0)});
// error: RC233: lr=-3e-4; a learning rate is at least 0 and finite in f32, as 3e-4
static_assert(valid<rc233_negative_rate>);

inline constexpr auto rc233_rate_of_no_number =
    trained({.seq = 8, .global_batch = 4, .lr = fault(nan, 1e-3)});
// error: RC233: lr=nan; a learning rate is at least 0 and finite in f32, as 3e-4
static_assert(valid<rc233_rate_of_no_number>);

inline constexpr auto rc233_rate_beyond_f32 =
    trained({.seq = 8, .global_batch = 4, .precision = fault(f32, f64), .lr = 1e39});
// error: RC233: lr=1e39; a learning rate is at least 0 and finite in f32, as 3e-4
static_assert(valid<rc233_rate_beyond_f32>);

inline constexpr auto rc233_rate_falls_upward =
    trained({.seq = 8, .global_batch = 4, .lr = 1e-3, .min_lr = fault(2e-3, 1e-3)});
// error: RC233: min_lr=2e-3 is where lr=1e-3 falls to; it is at least 0 and at most lr
static_assert(valid<rc233_rate_falls_upward>);

inline constexpr auto rc233_negative_floor =
    trained({.seq = 8, .global_batch = 4, .min_lr = fault(-1e-5, 0.0)});
// error: RC233: min_lr=-1e-5 is where lr=3e-4 falls to; it is at least 0 and at most lr
static_assert(valid<rc233_negative_floor>);

inline constexpr auto rc234_negative_decay =
    trained({.seq = 8, .global_batch = 4, .weight_decay = fault(-0.1, 0.0)});
// error: RC234: weight_decay=-0.1; it is at least 0 and finite in f32: 0 turns it off, 0.1 is usual
static_assert(valid<rc234_negative_decay>);

inline constexpr auto rc234_clip_to_infinity =
    trained({.seq = 8, .global_batch = 4, .clip = fault(infinity, 0.0)});
// error: RC234: clip=inf; the norm that gradients are clipped to is at least 0 and finite in f32: 0 turns it
//        off, 1 is usual
static_assert(valid<rc234_clip_to_infinity>);

inline constexpr auto rc235_betas_of_one = trained(
    {.seq = 8, .global_batch = 4, .optimizer = adamw{.beta1 = fault(1.0, 0.0), .beta2 = fault(1.5, 0.999)}});
// error: RC235: beta1=1; it is at least 0 and less than 1: 0.9 is usual. RC235: beta2=1.5; it is at least 0
//        and less than 1: 0.95 and 0.999 are usual
static_assert(valid<rc235_betas_of_one>);

inline constexpr auto rc236_eps_of_zero =
    trained({.seq = 8, .global_batch = 4, .optimizer = adamw{.eps = fault(0.0, 1e-30)}});
// error: RC236: eps=0; it divides, so in f32 it is at least 1.2e-38, and finite: 1e-8 is usual
static_assert(valid<rc236_eps_of_zero>);

inline constexpr auto rc236_eps_that_f32_rounds_to_zero =
    trained({.seq = 8, .global_batch = 4, .precision = fault(f32, f64), .optimizer = adamw{.eps = 1e-50}});
// error: RC236: eps=1e-50; it divides, so in f32 it is at least 1.2e-38, and finite: 1e-8 is usual
static_assert(valid<rc236_eps_that_f32_rounds_to_zero>);

inline constexpr auto rc237_negative_steps =
    trained({.seq = 8, .global_batch = 4, .warmup_steps = fault(-1, 9), .decay_steps = fault(-7, 1)});
// error: RC237: warmup_steps=-1; it is at least 0, and 0 starts with the whole learning rate. RC237:
//        decay_steps=-7; it is at least 0, and 0 keeps the learning rate after warm-up
static_assert(valid<rc237_negative_steps>);

inline constexpr auto rc237_schedule_said_twice = trained({.seq = 8,
                                                           .global_batch = 4,
                                                           .warmup_steps = fault(5, 0),
                                                           .lr_schedule = {lr::warm_up(5), lr::cosine(20)}});
// error: RC237: lr_schedule and warmup_steps, decay_steps or min_lr both set the learning rate; take one of
//        them
static_assert(valid<rc237_schedule_said_twice>);

inline constexpr auto rc237_piece_of_negative_steps =
    trained({.seq = 8, .global_batch = 4, .lr_schedule = {lr::warm_up(5), lr::constant(fault(-3, 3))}});
// error: RC237: piece 1 of lr_schedule has -3 steps; it has at least 0
static_assert(valid<rc237_piece_of_negative_steps>);

inline constexpr auto rc233_piece_leads_upward =
    trained({.seq = 8, .global_batch = 4, .lr = 1e-3, .lr_schedule = lr::wsd(5, 10, 5, fault(2e-3, 1e-3))});
// error: RC233: piece 2 of lr_schedule leads to 2e-3; it is at least 0 and at most lr=1e-3
static_assert(valid<rc233_piece_leads_upward>);

inline constexpr double theta = fault(0.0, 1.0);
inline constexpr plan rc238_theta_of_zero{
    .model =
        models::llama{
            .layers = 1, .hidden = 8, .heads = 2, .kv_heads = 2, .ffn = 8, .vocab = 8, .theta = theta},
    .schedule = one_microbatch,
    .recipe = recipe,
    .cluster = clusters::cpu};
// error: RC238: theta=0; the base of rotary positions is finite and at least 1: 1e4 and 5e5 are usual
static_assert(valid<rc238_theta_of_zero>);

constexpr auto slowed(const rope_scaling& by) {
  return plan{
      .model =
          models::llama{
              .layers = 1, .hidden = 8, .heads = 2, .kv_heads = 2, .ffn = 8, .vocab = 8, .rope_scaling = by},
      .schedule = one_microbatch,
      .recipe = recipe,
      .cluster = clusters::cpu};
}
inline constexpr auto rc251_faster = slowed({.by = rope_scaling::linear, .factor = fault(0.5, 2.0)});
// error: RC251: rope_scaling.factor=0.5; rotary positions are slowed by a finite factor of at least 1
static_assert(valid<rc251_faster>);

inline constexpr auto rc251_no_rule =
    slowed({.by = fault(rope_scaling::none, rope_scaling::linear), .factor = 8});
// error: RC251: rope_scaling has factor=8 and no rule; say .by = rope_scaling::linear, llama3 or yarn
static_assert(valid<rc251_no_rule>);

inline constexpr auto rc251_bounds_that_meet = slowed(
    {.by = rope_scaling::llama3, .factor = 8, .low_freq_factor = fault(4.0, 1.0), .high_freq_factor = 4});
// error: RC251: rope_scaling has low_freq_factor=4 and high_freq_factor=4; rotations below the first, in
//        turns over original_positions, are slowed, and those above the second are not: 0 < the first < the
//        second, as 1 and 4, or 1 and 32 for yarn
static_assert(valid<rc251_bounds_that_meet>);

inline constexpr auto rc251_no_positions =
    slowed({.by = rope_scaling::llama3, .factor = 8, .original_positions = fault(0, 8192)});
// error: RC251: rope_scaling.original_positions=0; a model was trained on at least 1
static_assert(valid<rc251_no_positions>);

constexpr auto turned(double share, double theta) {
  return plan{.model = models::glm4{.layers = 1,
                                    .hidden = 16,
                                    .heads = 2,
                                    .kv_heads = 2,
                                    .ffn = 8,
                                    .vocab = 8,
                                    .theta = theta,
                                    .rope_scaling = {.by = rope_scaling::yarn, .factor = 2},
                                    .rotary_share = share},
              .schedule = one_microbatch,
              .recipe = recipe,
              .cluster = clusters::cpu};
}
inline constexpr auto rc251_odd_share = turned(fault(0.375, 0.5), 10000);
// error: RC251: rope_scaling.share=0.375 of heads of 8 elements is 3 elements; an even number of them turns,
//        from 2 to 8: 0.5 and 1 are usual
static_assert(valid<rc251_odd_share>);

inline constexpr auto rc251_yarn_of_one = turned(0.5, fault(1.0, 10000.0));
// error: RC251: rope_scaling.by=yarn with theta=1, with which all pairs turn alike; yarn takes a theta above
//        1, as 1e4
static_assert(valid<rc251_yarn_of_one>);

inline constexpr auto rc251_share_of_llama = slowed({.share = fault(0.5, 1.0)});
// error: RC251: rope_scaling.share=0.5 of models::llama, which has no such field in its files: share=1, or
//        models::glm4 or models::phi3, which have a rotary_share
static_assert(valid<rc251_share_of_llama>);

inline constexpr plan rc250_norms_that_divide_by_zero{
    .model =
        models::gpt2{
            .layers = 1, .hidden = 8, .heads = 2, .ffn = 8, .vocab = 8, .norm_eps = fault(0.0, 1e-6)},
    .schedule = one_microbatch,
    .recipe = recipe,
    .cluster = clusters::cpu};
// error: RC250: norm_eps=0; norms divide by the root of a row's mean square plus it, so it is at least
//        1.2e-38, and finite: 1e-5 and 1e-6 are usual
static_assert(valid<rc250_norms_that_divide_by_zero>);

constexpr auto recomputing(recomputation r) { return trained({.seq = 8, .global_batch = 4, .recompute = r}); }

inline constexpr auto rc239_every_zeroth = recomputing({.full = true, .every = fault(0, 1)});
// error: RC239: recompute.every=0; with every=N each N-th repeated layer recomputes: it is at least 1, and 1
//        is each of them
static_assert(valid<rc239_every_zeroth>);

inline constexpr auto rc239_none_of_them = recomputing({.norms = true, .every = fault(2, 1)});
// error: RC239: recompute.every=2, but the model has 1 repeated layer, so that none recomputes; every is at
//        most that
static_assert(valid<rc239_none_of_them>);

inline constexpr auto rc239_every_second_nothing = recomputing({.every = fault(2, 1)});
// error: RC239: recompute has every=2 and nothing else; choose full, attention, activations or norms, or
//        leave it out
static_assert(valid<rc239_every_second_nothing>);

inline constexpr auto rc239_twice = recomputing({.full = true, .norms = fault(true, false)});
// error: RC239: recompute.full recomputes everything, so recompute.norms has no effect; take one of them
static_assert(valid<rc239_twice>);

inline constexpr plan rc239_no_backward{
    .model = models::gpt2{.layers = 1, .hidden = 8, .heads = 2, .ffn = 8, .vocab = 8},
    .schedule =
        schedules::looped_bfs{.microbatches = 1, .stages_per_rank = 1, .inference = fault(true, false)},
    .recipe = training{.seq = 8, .global_batch = 4, .recompute = {.full = true}},
    .cluster = clusters::cpu};
// error: RC239: the schedule is for inference, which has no backward to recompute for; leave recompute out
static_assert(valid<rc239_no_backward>);

/// Layers that add their input to itself, with the embedding and the head of a GPT-2.
struct doubled {
  static constexpr std::string_view name = "doubled";
  constexpr value forward(trace&, value x, const layer_context&) const { return x + x; }
};
template <class Middle>
struct adding {
  Middle middle;
  int vocab = 8, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const parameter_handle table = token_table(dim{"vocab", 8}, dim{"hidden", 8});
    return sequential(models::embedding{table, true}, middle,
                      models::head{.table = table, .norm = models::norm_kind::layer});
  }
};
constexpr auto recomputing_adding(auto middle, recomputation r) {
  return plan{.model = adding<decltype(middle)>{middle},
              .schedule = one_microbatch,
              .recipe = training{.seq = 8, .global_batch = 4, .recompute = r},
              .cluster = clusters::cpu};
}
inline constexpr auto rc239_nothing_repeated = recomputing_adding(doubled{}, {.full = fault(true, false)});
// error: RC239: the model has no repeated layers, and only these recompute; write repeat{count, layer}, or
//        leave recompute out
static_assert(valid<rc239_nothing_repeated>);

inline constexpr auto rc239_no_such_op =
    recomputing_adding(repeat{2, doubled{}}, {.norms = fault(true, false)});
// error: RC239: recompute.norms is set, and no op of a repeated layer is of that kind; leave it out
static_assert(valid<rc239_no_such_op>);

inline constexpr auto rc241_momentum_of_one =
    trained({.seq = 8, .global_batch = 4, .optimizer = sgd{.momentum = fault(1.0, 0.9)}});
// error: RC241: momentum=1; it is at least 0 and less than 1: 0.9 is usual
static_assert(valid<rc241_momentum_of_one>);

inline constexpr auto rc241_nesterov_alone =
    trained({.seq = 8, .global_batch = 4, .optimizer = sgd{.momentum = fault(0.0, 0.9), .nesterov = true}});
// error: RC241: nesterov looks ahead along sgd's momentum, and momentum=0; take momentum=0.9, or leave
//        nesterov out
static_assert(valid<rc241_nesterov_alone>);

struct muon {
  static constexpr optimizer_row row{.name = "muon",
                                     .title = "Muon",
                                     .moments = {{"momentum", "Muon's"}},
                                     .granularity = fault(granularity::matrix, granularity::element)};
  constexpr std::array<double, 0> numbers() const { return {}; }
};
inline constexpr auto rc264_whole_matrices = trained({.seq = 8, .global_batch = 4, .optimizer = muon{}});
// error: RC264: optimizer muon updates whole matrices, and STEP updates the elements of a rank's shards and
//        gathers no matrix; take an optimizer by element, as adamw{}
static_assert(valid<rc264_whole_matrices>);

struct adagrad {
  double lr_decay;
  static constexpr optimizer_row row{.name = "adagrad",
                                     .title = "Adagrad",
                                     .hyperparameters = {{.name = "lr_decay",
                                                          .range = hyperparameter_range::non_negative,
                                                          .usual = "0 is usual"}},
                                     .moments = {{"squares", "Adagrad's"}},
                                     .kernel = "user::adagrad",
                                     .header = "adagrad.hpp"};
  constexpr std::array<double, 1> numbers() const { return {lr_decay}; }
};
inline constexpr auto rc265_negative =
    trained({.seq = 8, .global_batch = 4, .optimizer = adagrad{fault(-0.1, 0.1)}});
// error: RC265: lr_decay=-0.1; it is at least 0 and finite: 0 is usual
static_assert(valid<rc265_negative>);

inline constexpr auto rc267_a_token = trained({.seq = 8, .global_batch = 4, .ignored_label = fault(0, -100)});
// error: RC267: ignored_label=0; a label of 0 or more may be a token of the vocabulary, so take a negative
//        number: -100 is usual
static_assert(valid<rc267_a_token>);

inline constexpr auto rc270_every_label = trained({.seq = 8,
                                                   .global_batch = 4,
                                                   .end_of_document = 3,
                                                   .ignored_label = fault(every_label_counts, -100),
                                                   .ignore_across_documents = true});
// error: RC270: ignore_across_documents=true, and without ignored_label every label counts; leave it out, or
//        take ignored_label: -100 is usual
static_assert(valid<rc270_every_label>);

inline constexpr auto rc270_no_documents = trained({.seq = 8,
                                                    .global_batch = 4,
                                                    .end_of_document = fault(-1, 3),
                                                    .ignored_label = -100,
                                                    .ignore_across_documents = true});
// error: RC270: ignore_across_documents=true, and without end_of_document no token ends a document; leave it
//        out, or take end_of_document
static_assert(valid<rc270_no_documents>);

inline constexpr auto rc242_wide_moments =
    trained({.seq = 8, .global_batch = 4, .moments = fault(f64, bf16)});
// error: RC242: moments=f64; they are kept in f32, which is the default and f64 in an f64 plan, or in bf16
static_assert(valid<rc242_wide_moments>);

inline constexpr auto rc242_moments_of_none =
    trained({.seq = 8, .global_batch = 4, .optimizer = sgd{.momentum = fault(0.0, 0.9)}, .moments = bf16});
// error: RC242: moments=bf16, and sgd without momentum keeps none; leave it out, or take momentum=0.9
static_assert(valid<rc242_moments_of_none>);

inline constexpr auto rc243_no_copy_to_leave_out = trained({.seq = 8,
                                                            .global_batch = 4,
                                                            .precision = fault(f32, bf16),
                                                            .master_weights = false,
                                                            .rounding = stochastic});
// error: RC243: master_weights=false, and the weights of a plan in f32 have no copy in bf16; leave it out, or
//        take precision=bf16
static_assert(valid<rc243_no_copy_to_leave_out>);

inline constexpr auto rc243_updates_lost =
    trained({.seq = 8, .global_batch = 4, .master_weights = false, .rounding = fault(nearest, stochastic)});
// error: RC243: master_weights=false, and rounding=nearest loses every update of less than 1/512 of a weight;
//        take rounding=stochastic
static_assert(valid<rc243_updates_lost>);

inline constexpr auto rc243_nothing_rounded =
    trained({.seq = 8, .global_batch = 4, .moments = fault(f32, bf16), .rounding = stochastic});
// error: RC243: rounding=stochastic, and nothing is kept in bf16 alone; take moments=bf16 or
//        master_weights=false, or leave it out
static_assert(valid<rc243_nothing_rounded>);

inline constexpr auto rc243_seed_of_nothing = trained({.seq = 8,
                                                       .global_batch = 4,
                                                       .moments = bf16,
                                                       .rounding = fault(nearest, stochastic),
                                                       .rounding_seed = 7});
// error: RC243: rounding_seed=7 has an effect only with stochastic rounding; leave it out, or take
//        rounding=stochastic
static_assert(valid<rc243_seed_of_nothing>);

inline constexpr auto rc244_wide_reductions =
    trained({.seq = 8, .global_batch = 4, .reductions = fault(f64, bf16)});
// error: RC244: reductions=f64; gradients are summed in f32, which is the default and f64 in an f64 plan, or
//        sent in bf16
static_assert(valid<rc244_wide_reductions>);

inline constexpr auto rc244_nothing_to_round =
    trained({.seq = 8, .global_batch = 4, .precision = fault(f32, bf16), .reductions = bf16});
// error: RC244: reductions=bf16, but a plan in f32 reduces its gradients in f32; leave it out, or take
//        precision=bf16
static_assert(valid<rc244_nothing_to_round>);

constexpr training adapted(low_rank_adaptation lora) { return {.seq = 8, .global_batch = 4, .lora = lora}; }
constexpr parameter_names queries{"wq"};

inline constexpr auto rc245_rank_of_zero =
    trained(adapted({.rank = fault(0, 1), .alpha = 16, .targets = queries}));
// error: RC245: lora.rank=0; it is at least 1: 8 and 16 are usual
static_assert(valid<rc245_rank_of_zero>);

inline constexpr auto rc245_alpha_of_nothing =
    trained(adapted({.rank = 8, .alpha = fault(0.0, 8.0), .targets = queries}));
// error: RC245: lora.alpha=0; it is above 0 and finite in f32: the product of the adapters is multiplied by
//        alpha / rank, and twice the rank is usual
static_assert(valid<rc245_alpha_of_nothing>);

inline constexpr auto rc245_alpha_of_no_number =
    trained(adapted({.rank = 8, .alpha = fault(nan, 8.0), .targets = queries}));
// error: RC245: lora.alpha=nan; it is above 0 and finite in f32: the product of the adapters is multiplied by
//        alpha / rank, and twice the rank is usual
static_assert(valid<rc245_alpha_of_no_number>);

inline constexpr auto rc245_no_targets =
    trained(adapted({.rank = 8, .alpha = 8, .targets = fault(parameter_names{}, queries)}));
// error: RC245: lora.targets is empty; name the weights that get adapters: wq and wv are usual
static_assert(valid<rc245_no_targets>);

inline constexpr auto rc246_target_misspelt =
    trained(adapted({.rank = 8, .alpha = 8, .targets = {fault("q", "wq"), "wv"}}));
// error: RC246: lora.targets names 'q', and no layer declares a parameter so; they are wte, wpe, norm1,
//        norm1.bias, wq, wq.bias, wk, wk.bias, wv, wv.bias, wo, wo.bias, norm2, norm2.bias, w1, w1.bias, w2,
//        w2.bias, norm, norm.bias
static_assert(valid<rc246_target_misspelt>);

inline constexpr auto rc246_frozen_misspelt =
    trained({.seq = 8, .global_batch = 4, .frozen = {fault("emb", "wte"), "wpe"}});
// error: RC246: frozen names 'emb', and no layer declares a parameter so; they are wte, wpe, norm1,
//        norm1.bias, wq, wq.bias, wk, wk.bias, wv, wv.bias, wo, wo.bias, norm2, norm2.bias, w1, w1.bias, w2,
//        w2.bias, norm, norm.bias
static_assert(valid<rc246_frozen_misspelt>);

inline constexpr auto rc246_empty_name =
    trained(adapted({.rank = 8, .alpha = 8, .targets = queries, .trained = {fault("", "wpe"), "wte"}}));
// error: RC246: lora.trained names '', and no layer declares a parameter so; they are wte, wpe, norm1,
//        norm1.bias, wq, wq.bias, wk, wk.bias, wv, wv.bias, wo, wo.bias, norm2, norm2.bias, w1, w1.bias, w2,
//        w2.bias, norm, norm.bias
static_assert(valid<rc246_empty_name>);

inline constexpr auto rc247_target_is_a_gain =
    trained(adapted({.rank = 8, .alpha = 8, .targets = {"wq", fault("norm1", "wk")}}));
// error: RC247: lora.targets names 'norm1', which layer_norm reads; LoRA adapts weights that only linear
//        reads: wq, wk, wv, wo, w1, w2
static_assert(valid<rc247_target_is_a_gain>);

inline constexpr auto rc247_target_is_a_tied_table =
    trained(adapted({.rank = 8, .alpha = 8, .targets = {fault("wte", "w2")}}));
// error: RC247: lora.targets names 'wte', which embedding reads; LoRA adapts weights that only linear reads:
//        wq, wk, wv, wo, w1, w2
static_assert(valid<rc247_target_is_a_tied_table>);

inline constexpr auto rc248_target_is_trained =
    trained(adapted({.rank = 8, .alpha = 8, .targets = queries, .trained = {fault("wq", "wk")}}));
// error: RC248: lora.trained names 'wq', and so does lora.targets, which keeps it as it is; name it in one of
//        them
static_assert(valid<rc248_target_is_trained>);

inline constexpr auto rc248_trained_and_frozen =
    trained({.seq = 8,
             .global_batch = 4,
             .frozen = {fault("wpe", "wte")},
             .lora = {.rank = 8, .alpha = 8, .targets = queries, .trained = {"wpe"}}});
// error: RC248: lora.trained names 'wpe', and so does frozen; name it in one of them
static_assert(valid<rc248_trained_and_frozen>);

struct kept_head {
  static constexpr std::string_view name = "head";
  parameter_handle table;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value gain = frozen(t.parameter("gain", {table.shape[1]}, {}, initial::ones));
    return cross_entropy(linear(enter_tp(rms_norm(x, gain), c), t.parameter(table)), c.input("targets"),
                         axis::tp, c.loss_scale);
  }
};
struct with_kept_head {
  int vocab = 8, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const parameter_handle table = token_table({"vocab", vocab}, {"hidden", 8}),
                           out = token_table({"vocab", vocab}, {"hidden", 8}, "out");
    return sequential(models::embedding{table}, kept_head{out});
  }
};
inline constexpr plan rc248_layer_freezes{
    .model = with_kept_head{},
    .schedule = one_microbatch,
    .recipe = adapted({.rank = 8, .alpha = 8, .targets = {"out"}, .trained = {fault("gain", "wte")}}),
    .cluster = clusters::cpu};
// error: RC248: lora.trained names 'gain', which its layer freezes; leave it out, or frozen() out of the
//        layer
static_assert(valid<rc248_layer_freezes>);

inline constexpr auto rc249_all_frozen = trained(
    {.seq = 8, .global_batch = 4, .frozen = {"wte",   "wpe",        "norm1",     "norm1.bias",
                                             "wq",    "wq.bias",    "wk",        "wk.bias",
                                             "wv",    "wv.bias",    "wo",        "wo.bias",
                                             "norm2", "norm2.bias", "w1",        "w1.bias",
                                             "w2",    "norm",       "norm.bias", fault("w2.bias", "norm")}});
// error: RC249: nothing is trained: every parameter is frozen; leave one out of frozen, take lora, or a
//        schedule with inference=true
static_assert(valid<rc249_all_frozen>);
