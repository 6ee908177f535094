// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include "../families/plan_list.hpp"

#include <rankc/models/encoder.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

namespace encoders {

namespace {

using namespace rankc;

constexpr training recipe{.seq = 8, .global_batch = 12, .precision = f64};
constexpr training repeating = again(recipe, {.full = true});
constexpr schedules::gpipe once{1}, three{3};
constexpr schedules::one_f_one_b in_turn{3};
constexpr schedules::zero_bubble_v v{3};

constexpr models::vision_transformer vit{
    .layers = 4, .hidden = 8, .heads = 4, .ffn = 12, .patch = 6, .classes = 12};
constexpr models::regression_encoder regression{
    .layers = 4, .hidden = 8, .heads = 4, .ffn = 12, .features = 5, .outputs = 3};

void add_layouts(plan_list& l, const std::string& job, const auto& model) {
  l.add(job, "one", model, {}, once);
  l.add(job, "three", model, {}, three);
  l.add(job, "dp2", model, {.world = 2, .dp_replicate = 2}, in_turn);
  l.add(job, "shard2", model, {.world = 2, .dp_shard = 2}, once);
  l.add(job, "tp2", model, {.world = 2, .tp = 2}, three);
  l.add(job, "cp2", model, {.world = 2, .cp = 2}, three);
  l.add(job, "ulysses2", model, {.world = 2, .cp = 2, .ulysses = 2}, three);
  l.add(job, "ring2", model, {.world = 2, .cp = 2, .cp_attention = cp_attention::ring}, three);
  l.add(job, "pp2", model, {.world = 2, .pp = 2}, in_turn);
  l.add(job, "zbv", model, {.world = 2, .pp = 2}, v);
  l.add(job, "repeated", model, {.world = 2, .pp = 2}, in_turn, repeating);
  l.add(job, "dp2tp2", model, {.world = 4, .dp_replicate = 2, .tp = 2}, three);
  l.add(job, "cp2tp2", model, {.world = 4, .cp = 2, .tp = 2}, three);
  l.add(job, "shard2cp2", model, {.world = 4, .dp_shard = 2, .cp = 2}, three);
  l.add(job, "tp2pp2", model, {.world = 4, .tp = 2, .pp = 2}, in_turn);
}

}  // namespace

std::vector<split_plan> plans() {
  plan_list l("encoders", recipe);
  add_layouts(l, "vit", vit);
  add_layouts(l, "regression", regression);
  return l.out;
}

plan_data plan_with_sequence_parallelism() {
  const models::vision_transformer model{
      .layers = 2, .hidden = 8, .heads = 2, .ffn = 8, .patch = 4, .classes = 4};
  return make_plan("refused", model, parallel_dims{.world = 2, .tp = 2, .sequence_parallel = true}, once,
                   training{.seq = 8, .global_batch = 2}, clusters::cpu);
}

}  // namespace encoders
