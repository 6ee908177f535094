// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include "../families/plan_list.hpp"

#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

namespace independent {

namespace {

using namespace rankc;

constexpr training recipe{.seq = 8, .global_batch = 12, .precision = f64};
constexpr training repeating = again(recipe, {.full = true});

class list : public plan_list {
 public:
  list() : plan_list("independent", recipe) {}
  void add(const char* family, const char* layout, const auto& model, parallel_dims dims,
           const auto& schedule, const training& by = recipe) {
    dims.world = dims.dp_replicate * dims.dp_shard * dims.cp * dims.tp * dims.pp * dims.ep;
    dims.expert_layout = expert_layout::independent;
    plan_list::add(family, layout, model, dims, schedule, by);
  }
  /// On one rank, on ranks with the same tokens, and on a folded layout.
  void add_layouts(const char* family, const auto& model) {
    plan_list::add(family, "one", model, {}, three);  // balance losses are over microbatches
    plan_list::add(family, "folded", model, {.world = 2, .dp_shard = 2, .ep = 2}, three);
    add(family, "alone", model, {.ep = 2}, three);
    add(family, "replicas", model, {.dp_replicate = 2, .ep = 2}, three);
    add(family, "shards", model, {.dp_shard = 2, .ep = 2}, three);
    add(family, "sp", model, {.tp = 2, .ep = 2, .sequence_parallel = true}, three);
    add(family, "pp", model, {.dp_shard = 2, .pp = 2, .ep = 2}, three);
  }
  /// Layouts for a model whose number of experts divides by 4: other times of gathers and recomputation, and
  /// sharded sequences.
  void add_more(const char* family, const auto& model) {
    add(family, "four", model, {.ep = 4}, once);
    add(family, "cp", model, {.dp_replicate = 2, .cp = 2, .ep = 2, .reshard = reshard::after_step}, three);
    add(family, "shards_sp", model,
        {.dp_replicate = 2, .dp_shard = 2, .tp = 2, .ep = 2, .sequence_parallel = true}, once);
    add(family, "zbv", model, {.dp_replicate = 2, .pp = 2, .ep = 2}, schedules::zero_bubble_v{3}, repeating);
    add(family, "dual_pipe_v", model, {.dp_shard = 2, .pp = 2, .ep = 2}, schedules::dual_pipe_v{6});
  }

 private:
  static constexpr schedules::gpipe once{1};
  static constexpr schedules::one_f_one_b three{3};
};

/// A block that takes both experts of one of two groups, by biased scores, plus a shared expert.
struct biased_block {
  static constexpr std::string_view name = "biased_block";
  models::attention_half attention;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const router_rule by{.scores = router_rule::sigmoid,
                         .normalized = true,
                         .scaling = 2.5,
                         .groups = 2,
                         .groups_taken = 1,
                         .bias_rate = 0.01};
    return models::add_experts(t, attention.add_to(t, x, c),
                               {.count = 4, .picks = 2, .ffn = 6, .router = by, .shared_ffn = 8}, 2, 1e-5, c);
  }
};
struct biased_model {
  int vocab = 32, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const dim c{"hidden", 12};
    const parameter_handle table = token_table(dim{"vocab", vocab}, c);
    const models::attention_half attention{
        c, dim{"heads", 12, 6, "head_dim"}, dim{"kv_heads", 12, 6, "head_dim"}, {2}, 10000};
    return sequential(models::embedding{table}, repeat{2, biased_block{attention}}, models::head{table});
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
  l.add_more("mixtral", mixtral);
  // An expert takes one pick from every two positions. The coefficients of the router losses are so large
  // that these losses show.
  l.add_layouts("limited", models::qwen3_moe{.layers = 2,
                                             .hidden = 12,
                                             .heads = 2,
                                             .kv_heads = 2,
                                             .head_dim = 6,
                                             .experts = 4,
                                             .top_k = 2,
                                             .expert_ffn = 6,
                                             .vocab = 32,
                                             .router_losses = {.balance = 0.5, .z = 0.25},
                                             .capacity = 1,
                                             .capacity_group = 2});
  l.add_layouts("biased", biased_model{});
  return l.out;
}

}  // namespace independent
