// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include "../families/plan_list.hpp"

#include <rankc/schedules/dual_pipe.hpp>
#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

namespace balance {

namespace {

using namespace rankc;

constexpr training recipe{.seq = 8, .global_batch = 12, .precision = f64};
constexpr training repeating = again(recipe, {.full = true});

class list : public plan_list {
 public:
  list() : plan_list("balance", recipe) {}
  /// Three microbatches of four sequences on all layouts: a balance loss covers one microbatch's tokens.
  void add_layouts(const char* family, const auto& model) {
    add(family, "one", model, {}, schedules::gpipe{3});
    add(family, "dp2", model, {.world = 2, .dp_replicate = 2}, three);
    add(family, "dp4", model, {.world = 4, .dp_replicate = 2, .dp_shard = 2}, three);
    add(family, "shards", model, {.world = 2, .dp_shard = 2}, three);
    add(family, "padded", model, {.world = 4, .dp_shard = 4, .reshard = reshard::after_step}, three);
    add(family, "tp2", model, {.world = 2, .tp = 2}, three);
    add(family, "sp", model, {.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = true}, three);
    add(family, "cp", model, {.world = 2, .cp = 2}, three);
    add(family, "cp_sp", model,
        {.world = 8,
         .dp_shard = 2,
         .cp = 2,
         .tp = 2,
         .sequence_parallel = true,
         .cp_weights = cp_weights::replicate},
        three);
    add(family, "pp2", model, {.world = 4, .dp_replicate = 2, .pp = 2}, three);
    add(family, "zbv", model, {.world = 4, .dp_shard = 2, .pp = 2}, schedules::zero_bubble_v{3});
    add(family, "zbv_sp", model, {.world = 4, .tp = 2, .pp = 2, .sequence_parallel = true},
        schedules::zero_bubble_v{3});
    add(family, "stages", model, {.world = 4, .dp_shard = 2, .pp = 2, .reshard = reshard::after_stage},
        schedules::interleaved_one_f_one_b{3, 2});
    add(family, "repeated", model, {.world = 4, .dp_shard = 2, .tp = 2}, three, repeating);
    add(family, "repeated_zbv", model, {.world = 4, .cp = 2, .pp = 2}, schedules::zero_bubble_v{3},
        repeating);
  }
  /// Experts spread over ranks; the model's number of experts divides by 4.
  void add_spread(const char* family, const auto& model) {
    add(family, "ep2", model, {.world = 2, .dp_shard = 2, .ep = 2}, three);
    add(family, "ep4_cp", model, {.world = 4, .dp_shard = 2, .cp = 2, .ep = 4}, three);
    add(family, "ep2_sp", model, {.world = 4, .dp_replicate = 2, .tp = 2, .ep = 2, .sequence_parallel = true},
        three);
    add(family, "ep2_zbv", model, {.world = 8, .dp_shard = 4, .pp = 2, .ep = 2}, schedules::zero_bubble_v{3});
  }
  /// Six microbatches of two sequences: bidirectional schedules run half of them in each direction.
  void add_both_ways(const char* family, const auto& model) {
    add(family, "one", model, {}, schedules::gpipe{6});
    add(family, "dual_pipe_v", model, {.world = 4, .dp_replicate = 2, .pp = 2}, schedules::dual_pipe_v{6});
    add(family, "dual_pipe", model, {.world = 4, .dp_shard = 2, .pp = 2}, schedules::dual_pipe{6});
    add(family, "dual_pipe_v_shards", model, {.world = 4, .dp_shard = 2, .pp = 2}, schedules::dual_pipe_v{6});
  }
  /// Balance losses over each data-parallel rank's tokens. One rank with six microbatches computes the same.
  void add_local(const char* family, const auto& model) {
    add(family, "one", model, {}, schedules::gpipe{6});
    add(family, "dp2", model, {.world = 2, .dp_replicate = 2}, three);
    add(family, "shards_cp", model, {.world = 4, .dp_shard = 2, .cp = 2}, three);
    add(family, "ring", model, {.world = 4, .dp_shard = 2, .cp = 2, .cp_attention = cp_attention::ring},
        three);
    add(family, "pairs", model,
        {.world = 8, .dp_shard = 2, .cp = 4, .ulysses = 2, .cp_attention = cp_attention::ring}, three);
    add(family, "sp_pp", model, {.world = 8, .dp_shard = 2, .tp = 2, .pp = 2, .sequence_parallel = true},
        three);
  }

 private:
  static constexpr schedules::one_f_one_b three{3};
};

constexpr models::qwen3_moe all_of(router_losses losses) {
  return {.layers = 4,
          .hidden = 12,
          .heads = 2,
          .kv_heads = 2,
          .head_dim = 4,
          .experts = 5,
          .top_k = 2,
          .expert_ffn = 6,
          .vocab = 32,
          .tied = true,
          .router_losses = losses};
}
constexpr models::qwen3_moe some_of(router_losses losses) {
  return {.layers = 4,
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
          .norm_topk_prob = false,
          .router_losses = losses};
}

/// A block whose router scores by the sigmoid.
struct sigmoid_block {
  static constexpr std::string_view name = "expert_block";
  models::attention_half attention;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    return models::add_experts(t, attention.add_to(t, x, c), {4, 3, 6, {router_rule::sigmoid, true, 2.5}}, 4,
                               1e-5, c);
  }
};
struct sigmoid_model {
  int vocab = 32, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr model_routers routers() const {
    return {4, 4, 3, {.balance = 0.5, .z = 0.25, .over = router_losses::each_layer}};
  }
  constexpr auto stack() const {
    const dim c{"hidden", 12};
    const parameter_handle table = token_table(dim{"vocab", vocab}, c);
    const models::attention_half attention{
        c, dim{"heads", 12, 6, "head_dim"}, dim{"kv_heads", 12, 6, "head_dim"}, {4}, 10000};
    return sequential(models::embedding{table}, repeat{4, sigmoid_block{attention}}, models::head{table});
  }
};

}  // namespace

std::vector<split_plan> plans() {
  // Coefficients so large that a wrong gradient of these losses shows in the whole gradient.
  constexpr router_losses both{.balance = 0.5, .z = 0.25},
      each{.balance = 0.5, .over = router_losses::each_layer};
  list l;
  l.add_layouts("all_layers", all_of(both));
  l.add_layouts("each_layer", some_of(each));
  l.add_spread("each_layer", some_of(each));
  l.add_both_ways("both_ways", all_of(both));
  l.add_both_ways("sigmoid", sigmoid_model{});
  l.add_local("local", some_of({.balance = 0.5, .z = 0.25, .local = true}));
  return l.out;
}

}  // namespace balance
