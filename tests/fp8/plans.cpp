// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include "../families/plan_list.hpp"

#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

namespace narrowing {

namespace {

using namespace rankc;

class list : public plan_list {
 public:
  list() : plan_list("fp8", {}) {}
  void add(const std::string& job, const std::string& layout, const auto& model, const parallel_dims& dims,
           const auto& schedule, int batch, recomputation recompute = {}, linear_precision linears = fp8) {
    const training recipe{.seq = 64,
                          .global_batch = batch,
                          .precision = f64,
                          .lr = 1e-3,
                          .recompute = recompute,
                          .linears = linears};
    plan_list::add(job, layout, model, dims, schedule, recipe);
  }
};

constexpr parallel_dims one{}, pp2{.world = 2, .pp = 2}, dp2{.world = 2, .dp_replicate = 2},
    fsdp2{.world = 2, .dp_shard = 2};

}  // namespace

std::vector<split_plan> plans() {
  list l;
  const auto all = [&](const std::string& name, const auto& model) {
    l.add(name + "_1", "one", model, one, schedules::gpipe{1}, 4);
    l.add(name + "_1", "again", model, one, schedules::gpipe{1}, 4, {.full = true});
    l.add(name + "_1", "norms_again", model, one, schedules::gpipe{1}, 4,
          {.activations = true, .norms = true, .every = 2});
    const std::string two = name + "_2";
    l.add(two, "one", model, one, schedules::gpipe{2}, 8);
    l.add(two, "pp2", model, pp2, schedules::one_f_one_b{2}, 8);
    l.add(two, "interleaved", model, pp2, schedules::interleaved_one_f_one_b{2, 2}, 8);
    l.add(two, "zbv", model, pp2, schedules::zero_bubble_v{2}, 8, {.attention = true});
    l.add(two, "dp2", model, dp2, schedules::gpipe{1}, 8);
    l.add(two, "fsdp2", model, fsdp2, schedules::gpipe{1}, 8);
    // tp ranks round parts of a tensor with scales of their part, so they differ from one rank.
    l.add(name + "_parts", "tp2", model, {.world = 2, .tp = 2}, schedules::gpipe{2}, 8);
    l.add(name + "_parts", "sp_pp2", model, {.world = 4, .tp = 2, .pp = 2, .sequence_parallel = true},
          schedules::zero_bubble_v{2}, 8);
    l.add(name + "_plain", "one", model, one, schedules::gpipe{2}, 8, {}, linear_precision::plain);

    const std::string rows = name + "_rows";
    l.add(rows + "_1", "one", model, one, schedules::gpipe{1}, 4, {}, fp8_rows);
    l.add(rows + "_1", "norms_again", model, one, schedules::gpipe{1}, 4,
          {.activations = true, .norms = true, .every = 2}, fp8_rows);
    l.add(rows + "_2", "one", model, one, schedules::gpipe{2}, 8, {}, fp8_rows);
    l.add(rows + "_2", "zbv", model, pp2, schedules::zero_bubble_v{2}, 8, {.attention = true}, fp8_rows);
    l.add(rows + "_2", "fsdp2", model, fsdp2, schedules::gpipe{1}, 8, {}, fp8_rows);
    l.add(rows + "_parts", "tp2", model, {.world = 2, .tp = 2}, schedules::gpipe{2}, 8, {}, fp8_rows);
    l.add(rows + "_parts", "sp_pp2", model, {.world = 4, .tp = 2, .pp = 2, .sequence_parallel = true},
          schedules::zero_bubble_v{2}, 8, {}, fp8_rows);
  };
  all("llama",
      models::llama{
          .layers = 8, .hidden = 64, .heads = 8, .kv_heads = 4, .ffn = 176, .vocab = 512, .vocab_used = 500});
  all("gpt2",
      models::gpt2{.layers = 4, .hidden = 64, .heads = 4, .ffn = 256, .vocab = 512, .vocab_used = 500});
  return l.out;
}

namespace {

plan_data plan_on_one_rank(const char* name, const auto& model) {
  return make_plan(name, model, parallel_dims{}, schedules::gpipe{1},
                   training{.seq = 16, .global_batch = 2, .precision = f32, .linears = fp8}, clusters::cpu);
}

}  // namespace

plan_data plan_of_mixed_sizes() {
  return plan_on_one_rank("mixed",
                          models::gpt2{.layers = 1, .hidden = 32, .heads = 2, .ffn = 40, .vocab = 64});
}

plan_data plan_with_routers() {
  return plan_on_one_rank("experts", models::mixtral{.layers = 1,
                                                     .hidden = 32,
                                                     .heads = 2,
                                                     .kv_heads = 2,
                                                     .experts = 16,
                                                     .top_k = 2,
                                                     .expert_ffn = 32,
                                                     .vocab = 64});
}

}  // namespace narrowing
