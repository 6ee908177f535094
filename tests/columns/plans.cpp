// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include "../families/plan_list.hpp"

#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

namespace columns {

namespace {

using namespace rankc;

constexpr training recipe{.seq = 8, .global_batch = 12, .precision = f64};
constexpr training repeating = again(recipe, {.full = true});
constexpr training norms_again = again(recipe, {.activations = true, .norms = true});

class list : public plan_list {
 public:
  list() : plan_list("columns", recipe) {}
  /// The model's number of experts divides by 2, and their columns by 4.
  void add_layouts(const char* family, const auto& model) {
    add(family, "one", model, {}, once);
    add(family, "over_tp", model, {.world = 4, .dp_shard = 2, .tp = 2, .etp = 2}, three);
    add(family, "shards", model, {.world = 4, .dp_shard = 4, .ep = 2, .etp = 2}, three);
    add(family, "sp", model,
        {.world = 4, .dp_shard = 2, .tp = 2, .ep = 2, .etp = 2, .sequence_parallel = true}, three);
    add(family, "wide_sp", model,
        {.world = 8, .dp_shard = 4, .tp = 2, .ep = 2, .etp = 4, .sequence_parallel = true}, once);
    add(family, "rest", model,
        {.world = 8, .dp_shard = 4, .cp = 2, .ep = 2, .etp = 2, .reshard = reshard::after_step}, once);
    add(family, "rest_sp", model,
        {.world = 8, .dp_shard = 4, .tp = 2, .ep = 2, .etp = 2, .sequence_parallel = true}, three);
    add(family, "replicas", model, {.world = 8, .dp_replicate = 2, .dp_shard = 2, .cp = 2, .ep = 2, .etp = 2},
        three);
    add(family, "cp", model, {.world = 4, .cp = 4, .ep = 2, .etp = 2}, three);
    add(family, "ring", model,
        {.world = 4, .dp_shard = 2, .cp = 2, .ep = 2, .etp = 2, .cp_attention = cp_attention::ring},
        schedules::gpipe{2});
    add(family, "heads", model, {.world = 4, .dp_shard = 2, .cp = 2, .ep = 2, .etp = 2, .ulysses = 2}, once);
    add(family, "pp", model, {.world = 8, .dp_shard = 4, .pp = 2, .ep = 2, .etp = 2}, three);
    add(family, "sp_zbv", model,
        {.world = 8, .dp_shard = 2, .tp = 2, .pp = 2, .ep = 2, .etp = 2, .sequence_parallel = true},
        schedules::zero_bubble_v{3});
    add(family, "dual_pipe_v", model, {.world = 8, .dp_shard = 2, .cp = 2, .pp = 2, .ep = 2, .etp = 2},
        schedules::dual_pipe_v{6});
    add(family, "repeated", model, {.world = 4, .dp_shard = 4, .ep = 2, .etp = 2}, three, repeating);
    add(family, "repeated_zbv", model, {.world = 8, .dp_shard = 2, .cp = 2, .pp = 2, .ep = 2, .etp = 2},
        schedules::zero_bubble_v{3}, norms_again);
  }
  /// Experts with a limited number of picks from two positions.
  void add_limited(const char* family, const auto& model) {
    add(family, "one", model, {}, once);
    add(family, "shards", model, {.world = 4, .dp_shard = 4, .ep = 2, .etp = 2}, three);
    add(family, "sp", model,
        {.world = 4, .dp_shard = 2, .tp = 2, .ep = 2, .etp = 2, .sequence_parallel = true}, three);
    add(family, "dual_pipe_v", model, {.world = 8, .dp_shard = 2, .cp = 2, .pp = 2, .ep = 2, .etp = 2},
        schedules::dual_pipe_v{6});
  }
  /// The model's number of columns divides by 3.
  void add_thirds(const char* family, const auto& model) {
    add(family, "one", model, {}, once);
    add(family, "thirds", model, {.world = 6, .dp_shard = 6, .ep = 2, .etp = 3}, once);
    add(family, "thirds_cp", model,
        {.world = 6, .dp_shard = 3, .cp = 2, .ep = 2, .etp = 3, .reshard = reshard::after_step},
        schedules::gpipe{2});
  }
  /// Experts over all replicas, and over ranks that cut across tp's.
  void add_across(const char* family, const auto& model) {
    constexpr expert_layout over = expert_layout::folded_over_replicas;
    add(family, "one", model, {}, once);
    add(family, "replicas", model,
        {.world = 8,
         .dp_replicate = 2,
         .cp = 2,
         .tp = 2,
         .ep = 2,
         .etp = 4,
         .sequence_parallel = true,
         .expert_layout = over},
        three);
    add(family, "replicas_alone", model, {.world = 4, .dp_replicate = 4, .ep = 2, .expert_layout = over},
        three);
    add(family, "replicas_step", model,
        {.world = 6,
         .dp_replicate = 3,
         .dp_shard = 2,
         .ep = 3,
         .expert_layout = over,
         .reshard = reshard::after_step},
        once);
    add(family, "replicas_zbv", model,
        {.world = 16,
         .dp_replicate = 2,
         .dp_shard = 2,
         .tp = 2,
         .pp = 2,
         .ep = 2,
         .sequence_parallel = true,
         .expert_layout = over},
        schedules::zero_bubble_v{3});
    add(family, "whole_on_cp", model,
        {.world = 8,
         .dp_shard = 2,
         .cp = 2,
         .tp = 2,
         .ep = 2,
         .sequence_parallel = true,
         .cp_weights = cp_weights::replicate},
        three);
    add(family, "replicas_whole_on_cp", model,
        {.world = 8,
         .dp_replicate = 2,
         .dp_shard = 2,
         .cp = 2,
         .ep = 2,
         .etp = 2,
         .expert_layout = over,
         .cp_weights = cp_weights::replicate,
         .reshard = reshard::after_step},
        three);
    add(family, "some_of_tp", model,
        {.world = 8, .dp_replicate = 2, .tp = 4, .ep = 2, .sequence_parallel = true}, three);
    add(family, "across_tp", model, {.world = 8, .dp_shard = 2, .tp = 4, .ep = 2, .sequence_parallel = true},
        three);
    add(family, "beside_tp", model,
        {.world = 6,
         .dp_shard = 3,
         .tp = 2,
         .ep = 3,
         .sequence_parallel = true,
         .reshard = reshard::after_step},
        once);
    add(family, "columns_across_tp", model,
        {.world = 12, .dp_shard = 3, .tp = 4, .ep = 3, .etp = 2, .sequence_parallel = true},
        schedules::gpipe{2});
  }

 private:
  static constexpr schedules::gpipe once{1};
  static constexpr schedules::one_f_one_b three{3};
};

/// Three picks of four experts, plus a shared expert for all tokens.
struct shared_block {
  static constexpr std::string_view name = "shared_block";
  models::attention_half attention;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    return models::add_experts(
        t, attention.add_to(t, x, c),
        {.count = 4, .picks = 3, .ffn = 6, .router = {router_rule::sigmoid, true, 2.5}, .shared_ffn = 8}, 4,
        1e-5, c);
  }
};
struct shared_model {
  int vocab = 32, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const dim c{"hidden", 12};
    const parameter_handle table = token_table(dim{"vocab", vocab}, c);
    const models::attention_half attention{
        c, dim{"heads", 12, 6, "head_dim"}, dim{"kv_heads", 12, 6, "head_dim"}, {4}, 10000};
    return sequential(models::embedding{table}, repeat{4, shared_block{attention}}, models::head{table});
  }
};

}  // namespace

std::vector<split_plan> plans() {
  list l;
  const models::mixtral mixtral{.layers = 4,
                                .hidden = 16,
                                .heads = 2,
                                .kv_heads = 2,
                                .experts = 4,
                                .top_k = 2,
                                .expert_ffn = 8,
                                .vocab = 32};
  l.add_layouts("mixtral", mixtral);
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
  l.add_thirds("shared", shared_model{});
  l.add("shared", "sp", shared_model{},
        {.world = 4, .dp_shard = 2, .tp = 2, .ep = 2, .etp = 2, .sequence_parallel = true},
        schedules::one_f_one_b{3});
  l.add_thirds("primes", models::mixtral{.layers = 2,
                                         .hidden = 14,
                                         .heads = 1,
                                         .kv_heads = 1,
                                         .experts = 10,
                                         .top_k = 3,
                                         .expert_ffn = 21,
                                         .vocab = 29});
  l.add_across("across", models::mixtral{.layers = 4,
                                         .hidden = 24,
                                         .heads = 4,
                                         .kv_heads = 4,
                                         .experts = 6,
                                         .top_k = 2,
                                         .expert_ffn = 8,
                                         .vocab = 48});
  return l.out;
}

}  // namespace columns
