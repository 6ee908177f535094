// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include "../families/plan_list.hpp"

#include <rankc/schedules/zero_bubble_v.hpp>

#include "models.hpp"

namespace inputs_of_models {

namespace {

constexpr training recipe{.seq = 8, .global_batch = 12, .precision = f64};
constexpr training repeating = again(recipe, {.full = true});
constexpr schedules::gpipe once{1};
constexpr schedules::one_f_one_b three{3};
constexpr schedules::zero_bubble_v v{3};

}  // namespace

std::vector<split_plan> plans() {
  constexpr weighted model{};
  plan_list l("inputs", recipe);
  l.add("weighted", "one", model, {}, once);
  l.add("weighted", "three", model, {}, schedules::gpipe{3});
  l.add("weighted", "dp2", model, {.world = 2, .dp_replicate = 2}, three);
  l.add("weighted", "shard2", model, {.world = 2, .dp_shard = 2}, once);
  l.add("weighted", "cp2", model, {.world = 2, .cp = 2}, three);
  l.add("weighted", "tp2", model, {.world = 2, .tp = 2}, once);
  l.add("weighted", "pp2", model, {.world = 2, .pp = 2}, three);
  l.add("weighted", "zbv", model, {.world = 2, .pp = 2}, v);
  l.add("weighted", "repeated", model, {.world = 2, .pp = 2}, three, repeating);
  l.add("weighted", "eight", model, {.world = 8, .dp_replicate = 2, .tp = 2, .pp = 2}, three);
  return l.out;
}

}  // namespace inputs_of_models
