// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include "../families/plan_list.hpp"

#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

namespace routing {

namespace {

using namespace rankc;

constexpr training recipe{.seq = 4, .global_batch = 6, .precision = f64};
constexpr training repeating = again(recipe, {.full = true});

class list : public plan_list {
 public:
  list() : plan_list("routing", recipe) {}
  void add_layouts(const char* family, const auto& model) {
    add(family, "one", model, {}, schedules::gpipe{1});
    add(family, "three", model, {}, schedules::gpipe{3});
    add(family, "dp2", model, {.world = 2, .dp_replicate = 2}, three);
    add(family, "shards", model, {.world = 2, .dp_shard = 2}, three);
    add(family, "padded", model, {.world = 3, .dp_shard = 3, .reshard = reshard::after_step},
        schedules::gpipe{1});
    add(family, "tp2", model, {.world = 2, .tp = 2}, three);
    add(family, "sp", model, {.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = true}, three);
    add(family, "cp2", model, {.world = 2, .cp = 2}, three);
    add(family, "pp2", model, {.world = 2, .pp = 2}, three);
    add(family, "zbv", model, {.world = 4, .dp_shard = 2, .pp = 2}, schedules::zero_bubble_v{3});
    add(family, "dual_pipe_v", model, {.world = 2, .pp = 2}, schedules::dual_pipe_v{6});
    add(family, "repeated", model, {.world = 4, .dp_shard = 2, .tp = 2}, three, repeating);
    add(family, "ep2", model, {.world = 2, .dp_shard = 2, .ep = 2}, three);
    add(family, "ep2_sp", model, {.world = 4, .dp_replicate = 2, .tp = 2, .ep = 2, .sequence_parallel = true},
        three);
  }
  /// Layouts for a model whose router choices are counted.
  void add_counted(const char* family, const auto& model) {
    add(family, "one", model, {}, three);
    add(family, "dp2", model, {.world = 2, .dp_replicate = 2}, three);
    add(family, "tp2", model, {.world = 2, .tp = 2}, three);
    add(family, "sp_repeated", model, {.world = 4, .dp_shard = 2, .tp = 2, .sequence_parallel = true}, three,
        repeating);
    add(family, "tp2_zbv", model, {.world = 4, .tp = 2, .pp = 2}, schedules::zero_bubble_v{3});
    add(family, "ep2_zbv", model, {.world = 4, .dp_shard = 2, .pp = 2, .ep = 2}, schedules::zero_bubble_v{3});
    add(family, "ep2_sp", model, {.world = 4, .dp_replicate = 2, .tp = 2, .ep = 2, .sequence_parallel = true},
        three);
  }

 private:
  static constexpr schedules::one_f_one_b three{3};
};

/// Llama's attention, and experts with a routing rule. An expert takes all of its picks, or a multiple of an
/// even share.
template <router_rule Rule, int Capacity = 0>
struct block {
  static constexpr std::string_view name = "expert_block";
  models::attention_half attention;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    return models::add_experts(t, attention.add_to(t, x, c),
                               {.count = 6,
                                .picks = 2,
                                .ffn = 4,
                                .router = Rule,
                                .capacity = Capacity,
                                .capacity_group = 2 * Capacity},
                               4, 1e-5, c);
  }
};
template <router_rule Rule, int Capacity = 0>
struct model {
  int vocab = 32, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const dim c{"hidden", 12};
    const parameter_handle table = token_table(dim{"vocab", vocab}, c);
    const models::attention_half attention{
        c, dim{"heads", 12, 6, "head_dim"}, dim{"kv_heads", 12, 6, "head_dim"}, {4}, 10000};
    return sequential(models::embedding{table}, repeat{4, block<Rule, Capacity>{attention}},
                      models::head{table});
  }
};
/// The same with counted choices, for metrics alone. limited_model counts them for losses, with a capacity.
template <router_rule Rule>
struct counted_model : model<Rule> {
  constexpr model_routers routers() const { return {.layers = 4, .experts = 6, .picks = 2, .counted = true}; }
};
template <router_rule Rule>
struct limited_model : model<Rule, 1> {
  constexpr model_routers routers() const {
    return {.layers = 4,
            .experts = 6,
            .picks = 2,
            .losses = {.balance = 0.1, .z = 0.01, .over = router_losses::each_layer},
            .limited = true};
  }
};

}  // namespace

std::vector<split_plan> plans() {
  // DeepSeek-V2's groups, scored by their largest softmax score; V3's groups of sigmoid scores with a bias;
  // and a bias alone.
  constexpr router_rule groups{.normalized = false, .groups = 3, .groups_taken = 2, .group_best = 1},
      both{
          .scores = router_rule::sigmoid, .scaling = 2.5, .groups = 3, .groups_taken = 2, .bias_rate = 0.001},
      bias{.bias_rate = 0.001};
  list l;
  l.add_layouts("groups", model<groups>{});
  l.add_layouts("both", model<both>{});
  l.add_layouts("bias", model<bias>{});
  l.add_counted("counted_groups", counted_model<groups>{});
  l.add_counted("limited_both", limited_model<both>{});
  return l.out;
}

}  // namespace routing
