// SPDX-License-Identifier: Apache-2.0
// The tiny presets of torch/train_baseline.py as plans, by one rank and by two.
#pragma once
#include <rankc/rankc.hpp>

namespace bench {
using namespace rankc;

inline constexpr auto gpt2 = models::gpt2{.layers = 4, .hidden = 64, .heads = 4, .ffn = 256, .vocab = 512, .vocab_used = 500};
inline constexpr auto llama = models::llama{.layers = 8, .hidden = 64, .heads = 8, .kv_heads = 4, .ffn = 176, .vocab = 512, .vocab_used = 500};
inline constexpr training recipe{.seq = 64, .global_batch = 8, .precision = f32};

using tiny_gpt2 = plan<gpt2, parallel_dims{}, schedules::gpipe{1}, recipe, clusters::cpu>;
using tiny_gpt2_dp2 = plan<gpt2, parallel_dims{.world = 2, .dp_replicate = 2}, schedules::gpipe{1}, recipe, clusters::cpu>;
using tiny_llama = plan<llama, parallel_dims{}, schedules::gpipe{1}, recipe, clusters::cpu>;
using tiny_llama_dp2 = plan<llama, parallel_dims{.world = 2, .dp_replicate = 2}, schedules::gpipe{1}, recipe, clusters::cpu>;

}  // namespace bench
