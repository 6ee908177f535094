// SPDX-License-Identifier: Apache-2.0
// A small Llama for conversations, and its LoRA adapters.
#pragma once
#include <rankc/rankc.hpp>

namespace fine_tuning {

using namespace rankc;

inline constexpr auto small_llama =
    models::llama{.layers = 2, .hidden = 32, .heads = 4, .kv_heads = 2, .ffn = 64, .vocab = 562};

/// Only labels inside conversations have a loss. Token 561 of the test's tokenizer ends each conversation.
constexpr training on_conversations(low_rank_adaptation lora) {
  return {.seq = 64,
          .global_batch = 4,
          .precision = f32,
          .lr = 2e-2,
          .lora = lora,
          .end_of_document = 561,
          .ignored_label = -100};
}

inline constexpr plan base{.model = small_llama,
                           .dims = parallel_dims{.world = 1},
                           .schedule = schedules::gpipe{.microbatches = 1},
                           .recipe = on_conversations({}),
                           .cluster = clusters::cpu};
static_assert(valid<base>);

inline constexpr plan adapted{
    .model = small_llama,
    .dims = parallel_dims{.world = 2, .dp_replicate = infer},
    .schedule = schedules::gpipe{.microbatches = 1},
    .recipe = on_conversations({.rank = 8, .alpha = 16, .targets = {"wq", "wv", "w1", "w2", "w3"}}),
    .cluster = clusters::cpu};
static_assert(valid<adapted>);

}  // namespace fine_tuning
