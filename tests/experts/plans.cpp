// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include "../families/plan_list.hpp"

#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

namespace experts {

namespace {

using namespace rankc;

constexpr training recipe{.seq = 8, .global_batch = 12, .precision = f64};
constexpr training repeating = again(recipe, {.full = true});
constexpr training norms_again = again(recipe, {.activations = true, .norms = true});

class list : public plan_list {
 public:
  list() : plan_list("experts", recipe) {}
  void add_layouts(const char* family, const auto& model) {
    add(family, "one", model, {}, once);
    add(family, "three", model, {}, schedules::gpipe{3});
    add(family, "dp3", model, {.world = 3, .dp_replicate = 3}, schedules::gpipe{2});
    add(family, "tp2", model, {.world = 2, .tp = 2}, once);
    add(family, "sp", model, {.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = true}, three);
    add(family, "shards", model, {.world = 2, .dp_shard = 2}, three);
    add(family, "padded", model, {.world = 3, .dp_shard = 3, .reshard = reshard::after_step}, once);
    add(family, "cp", model, {.world = 2, .cp = 2}, three);
    add(family, "cp_sp", model,
        {.world = 8,
         .dp_shard = 2,
         .cp = 2,
         .tp = 2,
         .sequence_parallel = true,
         .cp_weights = cp_weights::replicate},
        once);
    add(family, "pp2", model, {.world = 2, .pp = 2}, three);
    add(family, "zbv", model, {.world = 4, .tp = 2, .pp = 2}, schedules::zero_bubble_v{3});
    add(family, "shards_zbv", model, {.world = 4, .dp_shard = 2, .pp = 2, .reshard = reshard::after_step},
        schedules::zero_bubble_v{3});
    add(family, "dual_pipe_v", model, {.world = 4, .dp_replicate = 2, .pp = 2}, schedules::dual_pipe_v{6});
    add(family, "stages", model, {.world = 4, .dp_shard = 2, .pp = 2, .reshard = reshard::after_stage},
        schedules::interleaved_one_f_one_b{2, 2});
    add(family, "repeated", model, {.world = 4, .dp_shard = 2, .tp = 2}, three, repeating);
    add(family, "repeated_zbv", model, {.world = 4, .cp = 2, .pp = 2}, schedules::zero_bubble_v{3},
        norms_again);
  }
  /// Experts spread over ranks; the model's number of experts divides by 4.
  void add_spread(const char* family, const auto& model) {
    add(family, "ep2", model, {.world = 2, .dp_shard = 2, .ep = 2}, three);
    add(family, "ep4_step", model, {.world = 4, .dp_shard = 4, .ep = 4, .reshard = reshard::after_step},
        three);
    add(family, "ep2_shards", model, {.world = 4, .dp_shard = 4, .ep = 2}, three);
    add(family, "ep2_shards_step", model,
        {.world = 4, .dp_shard = 2, .cp = 2, .ep = 2, .reshard = reshard::after_step}, three);
    add(family, "ep2_shards_sp", model,
        {.world = 8, .dp_replicate = 2, .dp_shard = 2, .tp = 2, .ep = 2, .sequence_parallel = true}, three);
    add(family, "ep2_shards_stages", model,
        {.world = 8, .dp_shard = 2, .cp = 2, .pp = 2, .ep = 2, .reshard = reshard::after_stage},
        schedules::interleaved_one_f_one_b{2, 2});
    add(family, "ep2_dp", model, {.world = 4, .dp_replicate = 2, .dp_shard = 2, .ep = 2}, once);
    add(family, "ep2_cp", model, {.world = 2, .cp = 2, .ep = 2}, three);
    add(family, "ep4_cp", model, {.world = 4, .dp_shard = 2, .cp = 2, .ep = 4}, schedules::gpipe{2});
    add(family, "ep2_heads", model, {.world = 2, .cp = 2, .ep = 2, .ulysses = 2}, once);
    add(family, "ep2_sp", model, {.world = 4, .dp_replicate = 2, .tp = 2, .ep = 2, .sequence_parallel = true},
        three);
    add(family, "ep4_sp", model, {.world = 4, .dp_shard = 2, .tp = 2, .ep = 4, .sequence_parallel = true},
        three);
    add(family, "ep2_pp", model, {.world = 4, .dp_shard = 2, .pp = 2, .ep = 2}, three);
    add(family, "ep2_stages", model,
        {.world = 4, .dp_shard = 2, .pp = 2, .ep = 2, .reshard = reshard::after_stage},
        schedules::interleaved_one_f_one_b{2, 2});
    add(family, "ep2_zbv", model,
        {.world = 4, .dp_shard = 2, .pp = 2, .ep = 2, .reshard = reshard::after_layer},
        schedules::zero_bubble_v{3});
    add(family, "ep2_sp_zbv", model, {.world = 4, .tp = 2, .pp = 2, .ep = 2, .sequence_parallel = true},
        schedules::zero_bubble_v{3});
    add(family, "ep2_dual_pipe_v", model, {.world = 4, .dp_shard = 2, .pp = 2, .ep = 2},
        schedules::dual_pipe_v{6});
    add(family, "ep2_repeated", model, {.world = 4, .dp_replicate = 2, .dp_shard = 2, .ep = 2}, three,
        repeating);
    add(family, "ep2_repeated_zbv", model, {.world = 4, .cp = 2, .pp = 2, .ep = 2},
        schedules::zero_bubble_v{3}, norms_again);
  }
  /// Shared experts, together with routed experts of one rank and of several.
  void add_shared(const char* family, const auto& model) {
    add(family, "one", model, {}, once);
    add(family, "tp2", model, {.world = 2, .tp = 2}, once);
    add(family, "sp_repeated", model, {.world = 4, .dp_shard = 2, .tp = 2, .sequence_parallel = true}, three,
        repeating);
    add(family, "ep2", model, {.world = 2, .dp_shard = 2, .ep = 2}, three);
    add(family, "ep4_sp", model, {.world = 4, .dp_shard = 2, .tp = 2, .ep = 4, .sequence_parallel = true},
        three);
    add(family, "ep2_zbv", model,
        {.world = 8, .dp_shard = 2, .tp = 2, .pp = 2, .ep = 2, .sequence_parallel = true},
        schedules::zero_bubble_v{3});
  }
  /// Experts with a limited number of picks from two positions.
  void add_limited(const char* family, const auto& model) {
    add(family, "one", model, {}, once);
    add(family, "three", model, {}, schedules::gpipe{3});
    add(family, "tp2", model, {.world = 2, .tp = 2}, once);
    add(family, "sp", model, {.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = true}, three);
    add(family, "shards", model, {.world = 3, .dp_shard = 3, .reshard = reshard::after_step}, once);
    add(family, "cp", model, {.world = 2, .cp = 2}, three);
    add(family, "cp_sp", model,
        {.world = 8,
         .dp_shard = 2,
         .cp = 2,
         .tp = 2,
         .sequence_parallel = true,
         .cp_weights = cp_weights::replicate},
        once);
    add(family, "pp2", model, {.world = 2, .pp = 2}, three);
    add(family, "repeated_zbv", model, {.world = 4, .cp = 2, .pp = 2}, schedules::zero_bubble_v{3},
        norms_again);
    add(family, "ep2", model, {.world = 2, .dp_shard = 2, .ep = 2}, three);
    add(family, "ep4_cp", model,
        {.world = 4, .dp_shard = 2, .cp = 2, .ep = 4, .cp_attention = cp_attention::ring},
        schedules::gpipe{2});
    add(family, "ep4_sp", model, {.world = 4, .dp_shard = 2, .tp = 2, .ep = 4, .sequence_parallel = true},
        three);
    add(family, "ep2_shards_sp", model,
        {.world = 8, .dp_replicate = 2, .dp_shard = 2, .tp = 2, .ep = 2, .sequence_parallel = true}, three);
    add(family, "ep2_dual_pipe_v", model, {.world = 4, .dp_shard = 2, .pp = 2, .ep = 2},
        schedules::dual_pipe_v{6});
    add(family, "ep2_repeated_zbv", model, {.world = 4, .cp = 2, .pp = 2, .ep = 2},
        schedules::zero_bubble_v{3}, norms_again);
  }
  /// The same with a limit for whole sequences.
  void add_limited_sequences(const char* family, const auto& model) {
    add(family, "one", model, {}, schedules::gpipe{3});
    add(family, "sp_repeated", model, {.world = 4, .dp_shard = 2, .tp = 2, .sequence_parallel = true}, three,
        repeating);
    add(family, "ep2_pp", model, {.world = 4, .dp_shard = 2, .pp = 2, .ep = 2}, three);
    add(family, "ep2_sp", model, {.world = 4, .dp_replicate = 2, .tp = 2, .ep = 2, .sequence_parallel = true},
        three);
    add(family, "ep4_zbv", model, {.world = 8, .dp_shard = 4, .pp = 2, .ep = 4}, schedules::zero_bubble_v{3});
  }
  /// The same, where a step fails if picks do not fit.
  void add_failing(const char* family, const auto& model) {
    add(family, "one", model, {}, once);
    add(family, "tp2_zbv", model, {.world = 4, .tp = 2, .pp = 2}, schedules::zero_bubble_v{3});
    add(family, "ep2_shards", model, {.world = 4, .dp_shard = 4, .ep = 2}, three);
    add(family, "ep2_pp", model, {.world = 4, .dp_shard = 2, .pp = 2, .ep = 2}, three);
  }

 private:
  static constexpr schedules::gpipe once{1};
  static constexpr schedules::one_f_one_b three{3};
};

/// Sigmoid scores, and weights that sum to 2.5.
struct sigmoid_block {
  static constexpr std::string_view name = "expert_block";
  models::attention_half attention;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    return models::add_experts(t, attention.add_to(t, x, c), {4, 3, 6, {router_rule::sigmoid, true, 2.5}}, 4,
                               1e-5, c);
  }
};
/// The same with a capacity of half of a sequence's even share, in a model without statistics.
struct limited_block {
  static constexpr std::string_view name = "limited_block";
  models::attention_half attention;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    return models::add_experts(
        t, attention.add_to(t, x, c),
        {.count = 4, .picks = 2, .ffn = 8, .router = {router_rule::sigmoid, true, 2.5}, .capacity = 0.5}, 4,
        1e-5, c);
  }
};
/// The same with a shared expert.
struct shared_block {
  static constexpr std::string_view name = "shared_block";
  models::attention_half attention;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    return models::add_experts(
        t, attention.add_to(t, x, c),
        {.count = 4, .picks = 2, .ffn = 6, .router = {router_rule::sigmoid, true, 2.5}, .shared_ffn = 8}, 4,
        1e-5, c);
  }
};
/// Sigmoid scores as weights, not normalised, times 1.5.
struct scaled_block {
  static constexpr std::string_view name = "scaled_block";
  models::attention_half attention;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    return models::add_experts(t, attention.add_to(t, x, c), {3, 1, 4, {router_rule::sigmoid, false, 1.5}}, 4,
                               1e-5, c);
  }
};
/// Two blocks of each of two kinds.
template <class First, class Second>
struct own_model {
  int vocab = 32, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const dim c{"hidden", 12};
    const parameter_handle table = token_table(dim{"vocab", vocab}, c);
    const models::attention_half attention{
        c, dim{"heads", 12, 6, "head_dim"}, dim{"kv_heads", 12, 6, "head_dim"}, {4}, 10000};
    return sequential(models::embedding{table}, repeat{2, First{attention}}, repeat{2, Second{attention}},
                      models::head{table});
  }
};

}  // namespace

std::vector<split_plan> plans() {
  list l;
  l.add_layouts("qwen3_moe", models::qwen3_moe{.layers = 4,
                                               .hidden = 12,
                                               .heads = 2,
                                               .kv_heads = 2,
                                               .head_dim = 4,
                                               .experts = 5,
                                               .top_k = 2,
                                               .expert_ffn = 6,
                                               .vocab = 32,
                                               .tied = true});
  l.add_layouts("some_dense", models::qwen3_moe{.layers = 4,
                                                .hidden = 12,
                                                .heads = 4,
                                                .kv_heads = 2,
                                                .head_dim = 4,
                                                .experts = 4,
                                                .top_k = 2,
                                                .expert_ffn = 4,
                                                .vocab = 32,
                                                .ffn = 8,
                                                .mlp_only_layers = {0, 2},
                                                .norm_topk_prob = false});
  const models::mixtral mixtral{.layers = 4,
                                .hidden = 12,
                                .heads = 2,
                                .kv_heads = 2,
                                .experts = 4,
                                .top_k = 2,
                                .expert_ffn = 8,
                                .vocab = 32};
  l.add_layouts("mixtral", mixtral);
  l.add_spread("mixtral", mixtral);
  l.add_layouts("sigmoid", own_model<sigmoid_block, scaled_block>{});
  l.add_shared("shared", own_model<shared_block, shared_block>{});
  l.add_limited("capacity", models::mixtral{.layers = 4,
                                            .hidden = 12,
                                            .heads = 2,
                                            .kv_heads = 2,
                                            .experts = 4,
                                            .top_k = 2,
                                            .expert_ffn = 6,
                                            .vocab = 32,
                                            .capacity = 1,
                                            .capacity_group = 2});
  l.add_limited_sequences("capacity_losses", models::qwen3_moe{.layers = 4,
                                                               .hidden = 12,
                                                               .heads = 2,
                                                               .kv_heads = 2,
                                                               .head_dim = 4,
                                                               .experts = 4,
                                                               .top_k = 2,
                                                               .expert_ffn = 6,
                                                               .vocab = 32,
                                                               .router_losses = {.balance = 0.1, .z = 0.01},
                                                               .capacity = 1.1});
  l.add_limited_sequences("capacity_own", own_model<limited_block, limited_block>{.vocab = 20});
  l.add_failing("overflow", models::mixtral{.layers = 4,
                                            .hidden = 12,
                                            .heads = 2,
                                            .kv_heads = 2,
                                            .experts = 8,
                                            .top_k = 1,
                                            .expert_ffn = 4,
                                            .vocab = 32,
                                            .capacity = 6,
                                            .overflow = overflow::fail});
  return l.out;
}

plan_data plan_of_capacity(double capacity) {
  const models::mixtral model{.layers = 2,
                              .hidden = 64,
                              .heads = 4,
                              .kv_heads = 4,
                              .experts = 16,
                              .top_k = 4,
                              .expert_ffn = 32,
                              .vocab = 64,
                              .capacity = capacity,
                              .capacity_group = capacity > 0 ? 32 : 0};
  return make_plan("slabs", model, parallel_dims{.world = 8, .dp_shard = 8, .ep = 8}, schedules::gpipe{1},
                   training{.seq = 64, .global_batch = 16}, clusters::cpu);
}

}  // namespace experts
