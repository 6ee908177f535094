// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include "../families/plan_list.hpp"

#include <rankc/schedules/zero_bubble_1p.hpp>

#include "models.hpp"

namespace packed {

namespace {

constexpr training whole{.seq = 16, .global_batch = 8, .precision = f64, .ignored_label = -100};
constexpr training documents{.seq = 16,
                             .global_batch = 8,
                             .precision = f64,
                             .end_of_document = 3,
                             .ignored_label = -100,
                             .ignore_across_documents = true};
constexpr schedules::gpipe once{1}, four{4};
constexpr schedules::one_f_one_b two{2};
constexpr auto ring = cp_attention::ring;

}  // namespace

std::vector<split_plan> plans() {
  constexpr llama model{};
  plan_list l("packed", documents);
  l.add("llama", "one", model, {}, once);
  l.add("llama", "four", model, {}, four);
  l.add("llama", "dp2", model, {.world = 2, .dp_replicate = 2}, two);
  l.add("llama", "shard2", model, {.world = 2, .dp_shard = 2}, once);
  l.add("llama", "gathered", model, {.world = 2, .cp = 2}, two);
  l.add("llama", "ring", model, {.world = 4, .cp = 4, .cp_attention = ring}, once);
  l.add("llama", "ulysses", model, {.world = 2, .cp = 2, .ulysses = 2}, four);
  l.add("llama", "pairs", model, {.world = 4, .cp = 4, .ulysses = 2, .cp_attention = ring}, once);
  l.add("llama", "tp2", model, {.world = 2, .tp = 2}, two);
  l.add("llama", "pp2", model, {.world = 2, .pp = 2}, four);
  l.add("llama", "zb1p", model, {.world = 2, .pp = 2}, schedules::zero_bubble_1p{4});
  l.add("llama", "eight", model, {.world = 8, .dp_shard = 2, .cp = 2, .pp = 2}, two,
        again(documents, {.full = true}));
  l.add("whole", "one", model, {}, once, whole);
  l.add("whole", "gathered", model, {.world = 2, .cp = 2}, once, whole);
  return l.out;
}

plan_data plan_of(const training& recipe) {
  return make_plan("packed", llama{}, parallel_dims{}, once, recipe, clusters::cpu);
}

}  // namespace packed
