// SPDX-License-Identifier: Apache-2.0
#include "family_plans.hpp"

#include <rankc/models/gemma3.hpp>
#include <rankc/models/glm4.hpp>
#include <rankc/models/mistral.hpp>
#include <rankc/models/olmo2.hpp>
#include <rankc/models/phi3.hpp>
#include <rankc/models/smollm3.hpp>

namespace hugging_face {

namespace {

using namespace rankc;

/// A model alone and on layouts that do not shard its heads.
void add_unsharded(plan_list& l, const char* name, const auto& model) {
  l.add(name, "one", model, {}, schedules::gpipe{1});
  l.add(name, "dp2_cp2", model, {.world = 4, .dp_replicate = 2, .cp = 2}, schedules::gpipe{1});
  l.add(name, "shards2", model, {.world = 2, .dp_shard = 2}, schedules::gpipe{2});
}
void add_layouts(plan_list& l, const char* name, const auto& model) {
  add_unsharded(l, name, model);
  l.add(name, "tp2_pp2", model, {.world = 4, .tp = 2, .pp = 2}, schedules::one_f_one_b{2});
  l.add(name, "dp2_tp2", model, {.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = true},
        schedules::gpipe{2});
}

}  // namespace

void add_family_plans(plan_list& l) {
  add_layouts(l, "mistral",
              models::mistral{.layers = 2,
                              .hidden = 32,
                              .heads = 4,
                              .kv_heads = 2,
                              .ffn = 48,
                              .vocab = 96,
                              .theta = 10000,
                              .norm_eps = 1e-6,
                              .head_dim = 8,
                              .window = 8});
  add_layouts(
      l, "qwen2",
      models::qwen2{
          .layers = 2, .hidden = 32, .heads = 4, .kv_heads = 2, .ffn = 48, .vocab = 96, .tied = true});
  constexpr models::olmo2 olmo{
      .layers = 2, .hidden = 32, .heads = 4, .kv_heads = 2, .ffn = 48, .vocab = 96, .norm_eps = 1e-5};
  add_unsharded(l, "olmo2", olmo);
  l.add("olmo2", "pp2", olmo, {.world = 2, .pp = 2}, schedules::one_f_one_b{2});
  l.add("olmo2", "cp2_pp2", olmo, {.world = 4, .cp = 2, .pp = 2}, schedules::one_f_one_b{4});
  add_layouts(
      l, "smollm3",
      models::smollm3{
          .layers = 4, .hidden = 32, .heads = 4, .kv_heads = 2, .ffn = 48, .vocab = 96, .tied = true});
  add_layouts(l, "phi3",
              models::phi3{.layers = 2, .hidden = 32, .heads = 4, .kv_heads = 2, .ffn = 48, .vocab = 96});
  add_layouts(l, "glm4",
              models::glm4{.layers = 2, .hidden = 32, .heads = 4, .kv_heads = 2, .ffn = 48, .vocab = 96});
  add_layouts(l, "gemma3",
              models::gemma3{.layers = 4,
                             .hidden = 32,
                             .heads = 4,
                             .kv_heads = 2,
                             .head_dim = 16,
                             .ffn = 48,
                             .vocab = 96,
                             .window = 8,
                             .full_step = 4,
                             .query_scale = 16});
  add_layouts(
      l, "llama_yarn",
      models::llama{
          .layers = 2,
          .hidden = 32,
          .heads = 4,
          .kv_heads = 2,
          .ffn = 48,
          .vocab = 96,
          .theta = 10000,
          .norm_eps = 1e-6,
          .rope_scaling = {
              .by = rope_scaling::yarn, .factor = 4, .high_freq_factor = 32, .original_positions = 16}});
}

}  // namespace hugging_face
