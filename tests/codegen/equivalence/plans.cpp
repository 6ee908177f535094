// SPDX-License-Identifier: Apache-2.0
#include "plans.hpp"

#include <rankc/models/gpt2.hpp>
#include <rankc/models/llama.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>
#include <rankc/schedules/looped_bfs.hpp>

namespace equivalence_tests {

rankc::plan_data small_llama() {
  using namespace rankc;
  constexpr models::llama model{
      .layers = 2, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 24, .vocab = 32, .theta = 10000};
  return make_plan("small_llama", model, parallel_dims{.world = 4, .dp_replicate = 2, .tp = 2},
                   schedules::gpipe{.microbatches = 2}, training{.seq = 8, .global_batch = 4}, clusters::cpu);
}

rankc::plan_data sharded_gpt() {
  using namespace rankc;
  constexpr models::gpt2 model{.layers = 2, .hidden = 12, .heads = 2, .ffn = 14, .vocab = 30};
  return make_plan("sharded_gpt", model, parallel_dims{.world = 8, .dp_replicate = 2, .dp_shard = 4},
                   schedules::gpipe{.microbatches = 2}, training{.seq = 8, .global_batch = 16},
                   clusters::cpu);
}

rankc::plan_data large_world(int dp, int tp, int pp, int shards) {
  using namespace rankc;
  constexpr models::gpt2 model{.layers = 16, .hidden = 16, .heads = 8, .ffn = 32, .vocab = 64};
  return make_plan("world", model,
                   parallel_dims{.world = dp * shards * tp * pp,
                                 .dp_replicate = dp,
                                 .dp_shard = shards,
                                 .tp = tp,
                                 .pp = pp,
                                 .sequence_parallel = tp > 1},
                   schedules::one_f_one_b{4},
                   training{.seq = 8, .global_batch = dp * shards * 4, .precision = f32},
                   clusters::h200<256>);
}

std::vector<rankc::plan_data> sharded() {
  using namespace rankc;
  constexpr models::llama llama{
      .layers = 2, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 24, .vocab = 32, .theta = 10000};
  constexpr models::gpt2 gpt{.layers = 4, .hidden = 12, .heads = 2, .ffn = 20, .vocab = 32};
  const auto make = [](const char* name, const auto& model, const parallel_dims& dims, const auto& schedule) {
    const int ranks = dims.dp_replicate * dims.dp_shard;
    return make_plan(name, model, dims, schedule,
                     training{.seq = 8, .global_batch = 6 * ranks, .precision = f32}, clusters::h200<256>);
  };
  return {make("by_layers", llama, {.world = 2, .dp_shard = 2}, schedules::gpipe{2}),
          make("all_axes", llama,
               {.world = 16,
                .dp_replicate = 2,
                .dp_shard = 2,
                .tp = 2,
                .pp = 2,
                .sequence_parallel = true,
                .reshard = reshard::after_layer},
               schedules::one_f_one_b{3}),
          make("once", gpt, {.world = 4, .dp_shard = 2, .pp = 2}, schedules::one_f_one_b{3}),
          make("by_stages", gpt,
               {.world = 4, .dp_shard = 2, .pp = 2, .reshard = reshard::after_stage, .prefetch = 0},
               schedules::looped_bfs{3, 2}),
          make("padded", gpt, {.world = 3, .dp_shard = 3}, schedules::gpipe{2}),
          make("large", gpt, {.world = 96, .dp_replicate = 3, .dp_shard = 16, .pp = 2},
               schedules::one_f_one_b{2})};
}

}  // namespace equivalence_tests
