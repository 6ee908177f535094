// SPDX-License-Identifier: Apache-2.0
// The models that GPUs are measured on, as train_baseline.py has them, by one rank and by several.
#pragma once
#include <rankc/rankc.hpp>
#include <rankc/schedules/dual_pipe_v.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

namespace bench {
using namespace rankc;

inline constexpr auto gpt2_124m = models::gpt2{.layers = 12, .hidden = 768, .heads = 12, .ffn = 3072, .vocab = 50304, .vocab_used = 50257};
inline constexpr auto gpt2_1_5b = models::gpt2{.layers = 48, .hidden = 1600, .heads = 25, .ffn = 6400, .vocab = 50304, .vocab_used = 50257};
inline constexpr auto llama3_8b_8l =
    models::llama{.layers = 8, .hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128256};

constexpr training gpt2_recipe(int batch, bool deterministic = false) {
  return {.seq = 1024, .global_batch = batch, .precision = bf16, .deterministic = deterministic};
}
constexpr training llama_recipe(int batch) { return {.seq = 8192, .global_batch = batch, .precision = bf16}; }
inline constexpr parallel_dims one_rank{.world = 1};

using gpt2_124m_b64 = plan<gpt2_124m, one_rank, schedules::gpipe{1}, gpt2_recipe(64), clusters::h200<1>>;
using gpt2_124m_b4 = plan<gpt2_124m, one_rank, schedules::gpipe{1}, gpt2_recipe(4), clusters::h200<1>>;
using gpt2_124m_b4_deterministic = plan<gpt2_124m, one_rank, schedules::gpipe{1}, gpt2_recipe(4, true), clusters::h200<1>>;
using gpt2_1_5b_b16 = plan<gpt2_1_5b, one_rank, schedules::gpipe{1}, gpt2_recipe(16), clusters::h200<1>>;
using llama3_8b_8l_b2 = plan<llama3_8b_8l, one_rank, schedules::gpipe{1}, llama_recipe(2), clusters::h200<1>>;

using llama3_8b_8l_s1024 =
    plan<llama3_8b_8l, one_rank, schedules::gpipe{1}, training{.seq = 1024, .global_batch = 1, .precision = bf16}, clusters::h200<1>>;

using gpt2_124m_dp2 = plan<gpt2_124m, parallel_dims{.world = 2, .dp_replicate = 2}, schedules::gpipe{1}, gpt2_recipe(128), clusters::h200<1>>;
using llama3_8b_8l_dp2 = plan<llama3_8b_8l, parallel_dims{.world = 2, .dp_replicate = 2}, schedules::gpipe{1}, llama_recipe(4), clusters::h200<1>>;
using llama3_8b_8l_tp2 = plan<llama3_8b_8l, parallel_dims{.world = 2, .tp = 2}, schedules::gpipe{1}, llama_recipe(2), clusters::h200<1>>;
using llama3_8b_8l_tp2_sp =
    plan<llama3_8b_8l, parallel_dims{.world = 2, .tp = 2, .sequence_parallel = true}, schedules::gpipe{1}, llama_recipe(2), clusters::h200<1>>;
using llama3_8b_8l_pp2 = plan<llama3_8b_8l, parallel_dims{.world = 2, .pp = 2}, schedules::one_f_one_b{8}, llama_recipe(8), clusters::h200<1>>;
using llama3_8b_8l_pp2_zbv = plan<llama3_8b_8l, parallel_dims{.world = 2, .pp = 2}, schedules::zero_bubble_v{8}, llama_recipe(8), clusters::h200<1>>;
using llama3_8b_8l_pp2_dual_v = plan<llama3_8b_8l, parallel_dims{.world = 2, .pp = 2}, schedules::dual_pipe_v{8}, llama_recipe(8), clusters::h200<1>>;
using llama3_8b_8l_pp4 = plan<llama3_8b_8l, parallel_dims{.world = 4, .pp = 4}, schedules::one_f_one_b{16}, llama_recipe(16), clusters::h200<1>>;

}  // namespace bench
