// SPDX-License-Identifier: Apache-2.0
// The tiny presets of torch/train_baseline.py as plans, on one rank and on two.
#pragma once
#include <rankc/rankc.hpp>

namespace bench {
using namespace rankc;

inline constexpr auto gpt2 =
    models::gpt2{.layers = 4, .hidden = 64, .heads = 4, .ffn = 256, .vocab = 512, .vocab_used = 500};
inline constexpr auto llama = models::llama{
    .layers = 8, .hidden = 64, .heads = 8, .kv_heads = 4, .ffn = 176, .vocab = 512, .vocab_used = 500};
inline constexpr training recipe{.seq = 64, .global_batch = 8, .precision = f32};

constexpr auto on_cpu(auto model, parallel_dims dims = {}) {
  return plan{.model = model,
              .dims = dims,
              .schedule = schedules::gpipe{1},
              .recipe = recipe,
              .cluster = clusters::cpu};
}
inline constexpr parallel_dims two_replicas{.world = 2, .dp_replicate = 2};
inline constexpr auto tiny_gpt2 = on_cpu(gpt2);
inline constexpr auto tiny_gpt2_dp2 = on_cpu(gpt2, two_replicas);
inline constexpr auto tiny_llama = on_cpu(llama);
inline constexpr auto tiny_llama_dp2 = on_cpu(llama, two_replicas);

}  // namespace bench
