// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include "../families/plan_list.hpp"

#include <rankc/schedules/dual_pipe.hpp>
#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/schedules/zero_bubble_1p.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include "models.hpp"

namespace masked {

namespace {

constexpr training recipe{.seq = 8, .global_batch = 12, .precision = f64, .ignored_label = -100},
    packed{.seq = 8, .global_batch = 12, .precision = f64, .end_of_document = 3, .ignored_label = -1},
    oracle{.seq = 32, .global_batch = 4, .precision = f64, .ignored_label = -100};
constexpr schedules::gpipe once{1};
constexpr schedules::one_f_one_b two{2}, three{3}, four{4};
constexpr auto ring = cp_attention::ring;

void add_oracle(plan_list& l) {
  constexpr auto model = of_oracle(false), tied = of_oracle(true);
  const auto add = [&](const char* layout, const parallel_dims& dims, const auto& schedule) {
    l.add("llama", layout, model, dims, schedule, oracle);
  };
  add("one", {}, once);
  add("four", {}, four);
  add("dp2", {.world = 2, .dp_replicate = 2}, two);
  add("dp4", {.world = 4, .dp_replicate = 4}, once);
  add("shard2", {.world = 2, .dp_shard = 2}, once);
  add("shard4", {.world = 4, .dp_shard = 4, .reshard = reshard::after_step}, once);
  add("hybrid", {.world = 4, .dp_replicate = 2, .dp_shard = 2}, once);
  add("tp2", {.world = 2, .tp = 2}, once);
  add("sp", {.world = 2, .tp = 2, .sequence_parallel = true}, four);
  add("cp2", {.world = 2, .cp = 2}, two);
  add("ring", {.world = 4, .cp = 4, .cp_attention = ring}, once);
  add("ulysses", {.world = 2, .cp = 2, .ulysses = 2}, four);
  add("pairs", {.world = 4, .cp = 4, .ulysses = 2, .cp_attention = ring}, once);
  add("pp2", {.world = 2, .pp = 2}, four);
  add("zb1p", {.world = 2, .pp = 2}, schedules::zero_bubble_1p{4});
  add("dp2_tp2", {.world = 4, .dp_replicate = 2, .tp = 2}, two);
  add("shard2_cp2", {.world = 4, .dp_shard = 2, .cp = 2}, once);
  add("tp2_pp2", {.world = 4, .tp = 2, .pp = 2, .sequence_parallel = true}, two);
  add("eight", {.world = 8, .dp_replicate = 2, .tp = 2, .pp = 2}, two);
  l.add("llama", "repeated", model, {.world = 2, .pp = 2}, four, again(oracle, {.full = true}));
  l.add("tied", "one", tied, {}, once, oracle);
  l.add("tied", "dp2", tied, {.world = 2, .dp_replicate = 2}, two, oracle);
  l.add("tied", "tp2", tied, {.world = 2, .tp = 2}, four, oracle);
  l.add("tied", "pp2", tied, {.world = 2, .pp = 2}, four, oracle);
  l.add("tied", "shard2_pp2", tied, {.world = 4, .dp_shard = 2, .pp = 2}, two, oracle);
}

void add_experts(plan_list& l) {
  l.add("experts", "one", experts, {}, three);
  l.add("experts", "dp2", experts, {.world = 2, .dp_replicate = 2}, three);
  l.add("experts", "ep2", experts, {.world = 2, .dp_shard = 2, .ep = 2}, three);
  l.add("experts", "ep4_cp", experts, {.world = 4, .dp_shard = 2, .cp = 2, .ep = 4}, three);
  l.add("experts", "ep2_zbv", experts, {.world = 8, .dp_shard = 4, .pp = 2, .ep = 2},
        schedules::zero_bubble_v{3});
}

void add_documents(plan_list& l) {
  l.add("packed", "one", four_layers, {}, once, packed);
  l.add("packed", "cp2", four_layers, {.world = 2, .cp = 2}, three, packed);
  l.add("packed", "ring", four_layers, {.world = 4, .dp_replicate = 2, .cp = 2, .cp_attention = ring}, once,
        packed);
  l.add("packed", "ulysses", four_layers, {.world = 2, .cp = 2, .ulysses = 2}, three, packed);
  l.add("packed", "zbv", four_layers, {.world = 4, .dp_shard = 2, .pp = 2}, schedules::zero_bubble_v{3},
        packed);
}

/// Schedules in which two ranks have the last stage, or a rank has it and other stages, and a second loss.
void add_schedules(plan_list& l) {
  constexpr two_heads model{};
  l.add("two_losses", "one", model, {}, schedules::gpipe{6});
  l.add("two_losses", "dual_pipe", model, {.world = 4, .dp_shard = 2, .pp = 2}, schedules::dual_pipe{6});
  l.add("two_losses", "dual_pipe_v", model, {.world = 4, .dp_replicate = 2, .pp = 2},
        schedules::dual_pipe_v{6});
  l.add("two_losses", "interleaved", model,
        {.world = 4, .dp_shard = 2, .pp = 2, .reshard = reshard::after_stage},
        schedules::interleaved_one_f_one_b{6, 2});
  l.add("two_losses", "sp_pp", model,
        {.world = 8, .dp_replicate = 2, .tp = 2, .pp = 2, .sequence_parallel = true}, three,
        again(recipe, {.full = true}));
}

}  // namespace

std::vector<split_plan> plans() {
  plan_list l("masked", recipe);
  add_oracle(l);
  add_experts(l);
  add_documents(l);
  add_schedules(l);
  return l.out;
}

plan_data wide_plan(const training& recipe, const parallel_dims& dims) {
  return make_plan("masked", wide, dims, two, recipe, clusters::cpu);
}

}  // namespace masked
