// SPDX-License-Identifier: Apache-2.0
// RC120, RC230 to RC232, RC314, RC315: missing members of a plan, and missing parts of its model and its
// schedule.
#include "reject.hpp"

inline constexpr models::gpt2 gpt{.layers = 1, .hidden = 8, .heads = 2, .ffn = 8, .vocab = 8};
inline constexpr plan whole{
    .model = gpt, .schedule = one_microbatch, .recipe = recipe, .cluster = clusters::cpu};

#ifdef FAULT
inline constexpr plan rc120_no_cluster{
    .model = gpt, .dims = {}, .schedule = one_microbatch, .recipe = {.seq = 8, .global_batch = 4}};
inline constexpr plan rc230_no_model{.schedule = one_microbatch, .recipe = recipe, .cluster = clusters::cpu};
inline constexpr plan rc231_no_recipe{
    .model = gpt, .dims = parallel_dims{}, .schedule = one_microbatch, .cluster = clusters::cpu};
inline constexpr plan rc314_no_schedule{.model = gpt, .recipe = recipe, .cluster = clusters::cpu};
inline constexpr plan nothing{};
#else
inline constexpr auto rc120_no_cluster = whole, rc230_no_model = whole, rc231_no_recipe = whole;
inline constexpr auto rc314_no_schedule = whole, nothing = whole;
#endif
// error: RC120: the plan has no cluster: write .cluster = clusters::cpu, clusters::h200<1> or one of your own
static_assert(valid<rc120_no_cluster>);
// error: RC230: the plan has no model: write .model = models::gpt2{...}, models::llama{...} or one of your
//        own
static_assert(valid<rc230_no_model>);
// error: RC231: the plan has no recipe: write .recipe = training{.seq = 128, .global_batch = 16}
static_assert(valid<rc231_no_recipe>);
// error: RC314: the plan has no schedule: write .schedule = schedules::one_f_one_b{.microbatches = 4}, or
//        schedules::gpipe{.microbatches = 1} on one rank
static_assert(valid<rc314_no_schedule>);
// error: RC230: the plan has no model: write .model = models::gpt2{...}, models::llama{...} or one of your
//        own. RC314: the plan has no schedule: write .schedule = schedules::one_f_one_b{.microbatches = 4},
//        or schedules::gpipe{.microbatches = 1} on one rank. RC231: the plan has no recipe: write .recipe =
//        training{.seq = 128, .global_batch = 16}. RC120: the plan has no cluster: write .cluster =
//        clusters::cpu, clusters::h200<1> or one of your own
static_assert(valid<nothing>);

// `dims` and `recipe` may be braces without type names.
inline constexpr plan in_braces{.model = gpt,
                                .dims = {},
                                .schedule = one_microbatch,
                                .recipe = {.seq = fault(0, 8), .global_batch = 4},
                                .cluster = clusters::cpu};
// error: RC220: seq=0; a sequence has at least 1 token
static_assert(valid<in_braces>);

/// A model without some of its members.
struct without_stack {
  int vocab = 8;
  constexpr void check(report&) const {}
};
inline constexpr plan rc232_model_without_stack{.model = fault_type<without_stack>(gpt),
                                                .schedule = one_microbatch,
                                                .recipe = recipe,
                                                .cluster = clusters::cpu};
// error: RC232: the model has no stack() and no vocab_used; a model has a const stack() of layers, a const
//        check(report&), int vocab and int vocab_used, as models::gpt2 has; a model without tokens has static
//        constexpr bool reads_tokens = false in place of the vocabulary
static_assert(valid<rc232_model_without_stack>);

/// Schedules without some of their members.
struct without_microbatches {
  static constexpr std::string_view name = "mine";
  static constexpr int stages_per_rank = 1;
  constexpr int rank_of_stage(int stage, int) const { return stage; }
  constexpr void actions(int, int, auto) const {}
};
inline constexpr plan rc315_no_microbatches{.model = gpt,
                                            .schedule = fault_type<without_microbatches>(one_microbatch),
                                            .recipe = recipe,
                                            .cluster = clusters::cpu};
// error: RC315: the schedule mine has no microbatches; a schedule has int microbatches and stages_per_rank, a
//        static std::string_view name, and const functions rank_of_stage(stage, pp) and actions(pp, rank,
//        emit) or table(pp), as schedules::gpipe has
static_assert(valid<rc315_no_microbatches>);

struct without_all {};
inline constexpr plan rc315_no_member{.model = gpt,
                                      .schedule = fault_type<without_all>(one_microbatch),
                                      .recipe = recipe,
                                      .cluster = clusters::cpu};
// error: RC315: the schedule has no microbatches and no stages_per_rank and no name and no
//        rank_of_stage(stage, pp) and no actions(pp, rank, emit); a schedule has int microbatches and
//        stages_per_rank, a static std::string_view name, and const functions rank_of_stage(stage, pp) and
//        actions(pp, rank, emit) or table(pp), as schedules::gpipe has
static_assert(valid<rc315_no_member>);
