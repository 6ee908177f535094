// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include <fuzz/schedules.hpp>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

namespace field {

namespace {

using namespace rankc;
using fuzz::order;

/// A block with sigmoid scores and a shared expert.
struct sigmoid_block {
  static constexpr std::string_view name = "expert_block";
  models::attention_half attention;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    return models::add_experts(t, attention.add_to(t, x, c), {4, 2, 4, {router_rule::sigmoid, true, 2.5}, 8},
                               2, 1e-5, c);
  }
};
struct sigmoid_model {
  router_losses losses;
  int vocab = 16, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr model_routers routers() const { return {2, 4, 2, losses}; }
  constexpr auto stack() const {
    const dim c{"hidden", 8};
    const parameter_handle table = token_table(dim{"vocab", vocab}, c);
    const models::attention_half attention{
        c, dim{"heads", 8, 4, "head_dim"}, dim{"kv_heads", 8, 4, "head_dim"}, {2}, 10000};
    return sequential(models::embedding{table}, repeat{2, sigmoid_block{attention}}, models::head{table});
  }
};

/// A router that takes two experts out of one of two groups, with a bias.
struct biased_block {
  static constexpr std::string_view name = "expert_block";
  models::attention_half attention;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const router_rule by{.scores = router_rule::sigmoid, .groups = 2, .groups_taken = 1, .bias_rate = 0.01};
    return models::add_experts(t, attention.add_to(t, x, c), {.count = 4, .picks = 2, .ffn = 4, .router = by},
                               2, 1e-5, c);
  }
};
struct biased_model {
  int vocab = 16, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const dim c{"hidden", 8};
    const parameter_handle table = token_table(dim{"vocab", vocab}, c);
    const models::attention_half attention{
        c, dim{"heads", 8, 4, "head_dim"}, dim{"kv_heads", 8, 4, "head_dim"}, {2}, 10000};
    return sequential(models::embedding{table}, repeat{2, biased_block{attention}}, models::head{table});
  }
};

/// A Qwen3-MoE that picks `picks` of 4 experts, in every second layer or in all.
models::qwen3_moe qwen(int layers, int picks, const router_losses& losses = {}, bool dense = false) {
  models::qwen3_moe m{.layers = layers,
                      .hidden = 8,
                      .heads = 2,
                      .kv_heads = 2,
                      .head_dim = 4,
                      .experts = 4,
                      .top_k = picks,
                      .expert_ffn = 4,
                      .vocab = 16,
                      .norm_topk_prob = picks != 3,
                      .router_losses = losses};
  if (dense) {
    m.ffn = 8;
    m.mlp_only_layers = {0};
  }
  return m;
}

/// Experts with capacity 1 in groups of positions, so that some picks are dropped.
models::qwen3_moe limited(int layers, int group, const router_losses& losses = {}, bool dense = false) {
  models::qwen3_moe m = qwen(layers, 2, losses, dense);
  m.capacity = 1;
  m.capacity_group = group;
  return m;
}

/// Plans whose names begin with a common word.
class list {
 public:
  explicit list(std::string of) : of_(std::move(of)) {}
  void add(const auto& model, parallel_dims dims, const fuzz::schedule_choice& by) {
    dims.world = dims.dp_replicate * dims.dp_shard * dims.cp * dims.tp * dims.pp *
                 (dims.expert_layout == expert_layout::independent ? dims.ep : 1);
    const fuzz::schedule schedule = fuzz::make_schedule(by, dims.pp);
    all.push_back(make_plan(of_ + " " + std::to_string(all.size()) + " " + std::string(schedule.name), model,
                            dims, schedule, training{.seq = 4, .global_batch = 4, .precision = f64},
                            clusters::cpu));
  }
  std::vector<plan_data> all;

 private:
  std::string of_;
};

const fuzz::schedule_choice once{order::gpipe, 1}, twice{order::gpipe, 2}, by_turns{order::one_f_one_b, 2},
    halves{order::zero_bubble_v, 2, 2};
// Coefficients so large that these losses show next to the model's.
constexpr router_losses both{.balance = 0.5, .z = 0.25},
    each{.balance = 0.5, .over = router_losses::each_layer}, local{.balance = 0.5, .z = 0.25, .local = true},
    z{.z = 0.25};

}  // namespace

std::vector<plan_data> spread_plans() {
  list l("experts");
  l.add(qwen(2, 2), {.dp_shard = 2, .ep = 2}, twice);
  l.add(qwen(2, 2), {.dp_shard = 4, .ep = 2}, once);
  l.add(qwen(2, 2), {.tp = 2, .ep = 2, .sequence_parallel = true}, once);
  l.add(qwen(2, 2), {.cp = 2, .ep = 2}, twice);
  l.add(qwen(2, 2), {.dp_shard = 2, .pp = 2, .ep = 2}, by_turns);
  l.add(qwen(4, 2, {}, true), {.dp_shard = 2, .pp = 2, .ep = 2}, halves);
  l.add(qwen(2, 3), {.dp_shard = 2, .ep = 2}, twice);
  l.add(qwen(2, 3), {.dp_shard = 4, .ep = 4, .reshard = reshard::after_step}, once);
  l.add(qwen(2, 2), {.dp_replicate = 2, .dp_shard = 2, .ep = 2}, once);
  l.add(qwen(2, 2),
        {.dp_shard = 2, .tp = 2, .ep = 2, .sequence_parallel = true, .reshard = reshard::after_step}, twice);
  l.add(limited(2, 0), {.dp_shard = 2, .ep = 2}, twice);
  l.add(limited(2, 2), {.tp = 2, .sequence_parallel = true}, once);
  l.add(limited(2, 2),
        {.dp_shard = 2, .tp = 2, .ep = 2, .sequence_parallel = true, .reshard = reshard::after_step}, twice);
  l.add(limited(4, 0, both, true), {.dp_shard = 2, .pp = 2, .ep = 2}, halves);
  l.add(qwen(2, 2), {.dp_shard = 4, .ep = 2, .etp = 2}, once);
  l.add(qwen(2, 3), {.dp_shard = 2, .tp = 2, .ep = 2, .etp = 2, .sequence_parallel = true}, twice);
  l.add(qwen(4, 2, {}, true), {.dp_shard = 2, .cp = 2, .pp = 2, .ep = 2, .etp = 2}, halves);
  l.add(
      limited(2, 2),
      {.dp_shard = 4, .tp = 2, .ep = 2, .etp = 2, .sequence_parallel = true, .reshard = reshard::after_step},
      once);
  constexpr expert_layout over = expert_layout::folded_over_replicas;
  l.add(qwen(2, 2), {.dp_replicate = 2, .dp_shard = 2, .ep = 2, .expert_layout = over}, once);
  l.add(limited(2, 0), {.dp_replicate = 4, .ep = 2, .expert_layout = over}, once);
  l.add(qwen(2, 3),
        {.dp_replicate = 2,
         .tp = 2,
         .ep = 2,
         .etp = 2,
         .sequence_parallel = true,
         .expert_layout = over,
         .reshard = reshard::after_step},
        twice);
  models::qwen3_moe four_heads = qwen(2, 2);
  four_heads.heads = four_heads.kv_heads = 4;
  four_heads.head_dim = 2;
  l.add(four_heads, {.tp = 4, .ep = 2, .sequence_parallel = true}, twice);
  return l.all;
}

std::vector<plan_data> apart_plans() {
  constexpr expert_layout apart = expert_layout::independent;
  list l("independent");
  l.add(qwen(2, 2), {.ep = 2, .expert_layout = apart}, twice);
  l.add(qwen(2, 3), {.dp_replicate = 2, .ep = 2, .expert_layout = apart}, once);
  l.add(qwen(2, 2), {.dp_shard = 2, .ep = 2, .expert_layout = apart}, twice);
  l.add(limited(2, 2, both), {.tp = 2, .ep = 2, .sequence_parallel = true, .expert_layout = apart}, twice);
  l.add(qwen(4, 2, each, true), {.pp = 2, .ep = 2, .expert_layout = apart}, halves);
  l.add(sigmoid_model{both}, {.cp = 2, .ep = 4, .expert_layout = apart}, once);
  l.add(biased_model{}, {.dp_replicate = 2, .ep = 2, .expert_layout = apart}, twice);
  return l.all;
}

std::vector<plan_data> balanced_plans() {
  list l("balance");
  l.add(qwen(2, 2, both), {.dp_replicate = 2}, twice);
  l.add(qwen(2, 2, each), {.cp = 2}, twice);
  l.add(qwen(2, 2, both, true), {.tp = 2, .sequence_parallel = true}, twice);
  l.add(qwen(2, 3, z), {.dp_shard = 2, .tp = 2}, once);
  l.add(qwen(2, 2, both), {.dp_replicate = 2, .pp = 2}, by_turns);
  l.add(qwen(4, 2, each, true), {.dp_shard = 2, .pp = 2}, halves);
  l.add(qwen(2, 2, local), {.dp_shard = 2, .cp = 2}, twice);
  l.add(qwen(2, 2, local), {.dp_replicate = 2, .tp = 2, .pp = 2, .sequence_parallel = true}, by_turns);
  l.add(sigmoid_model{both}, {.dp_replicate = 2}, twice);
  l.add(qwen(2, 2, both), {.dp_shard = 2, .ep = 2}, twice);
  l.add(qwen(2, 3, each), {.tp = 2, .ep = 2, .sequence_parallel = true}, twice);
  l.add(qwen(4, 2, local), {.dp_shard = 2, .pp = 2, .ep = 2}, halves);
  l.add(qwen(2, 2, both), {.cp = 2, .ep = 2, .cp_attention = cp_attention::ring}, twice);
  l.add(qwen(2, 2, local), {.dp_shard = 2, .cp = 2, .cp_attention = cp_attention::ring}, twice);
  l.add(sigmoid_model{each}, {.dp_shard = 2, .cp = 2, .ep = 2}, once);
  l.add(sigmoid_model{both}, {.dp_shard = 2, .tp = 2, .ep = 2, .sequence_parallel = true}, once);
  return l.all;
}

std::vector<plan_data> biased_plans() {
  list l("bias");
  l.add(biased_model{}, {.dp_replicate = 2}, twice);
  l.add(biased_model{}, {.dp_shard = 2, .tp = 2, .sequence_parallel = true}, twice);
  l.add(biased_model{}, {.cp = 2, .pp = 2}, by_turns);
  l.add(biased_model{}, {.dp_shard = 2, .ep = 2}, twice);
  return l.all;
}

}  // namespace field
