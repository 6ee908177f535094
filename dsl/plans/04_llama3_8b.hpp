// SPDX-License-Identifier: Apache-2.0
// A current model on one node of eight H200s: Llama 3 8B in bf16, with dp, tp and pp of two each.
#pragma once
#include <rankc/peak_bytes.hpp>
#include <rankc/rankc.hpp>
#include <rankc/step_time.hpp>

namespace plans {
using namespace rankc;

inline constexpr auto llama3 =
    models::llama{.layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128256};

inline constexpr parallel_dims one_node{
    .world = 8, .dp_replicate = infer, .tp = 2, .pp = 2, .sequence_parallel = true};

inline constexpr training llama3_recipe{
    .seq = 8192, .global_batch = 32, .precision = bf16, .warmup_steps = 100};

inline constexpr plan llama3_8b{.model = llama3,
                                .dims = one_node,
                                .schedule = schedules::one_f_one_b{.microbatches = 16},
                                .recipe = llama3_recipe,
                                .cluster = clusters::h200<1>};
static_assert(valid<llama3_8b>);
static_assert(fits<llama3_8b>);
static_assert(peak_bytes<llama3_8b> < 141'000'000'000);  // as it is placed, with CUDA's and NCCL's own
static_assert(step_time<llama3_8b> < 3.6);               // seconds, as predicted on eight H200s

}  // namespace plans
