// SPDX-License-Identifier: Apache-2.0
// RC401 of a large model: the compiler finds a change that fits within the operations that the test allows.
#include "../rejects/reject.hpp"

#include <rankc/peak_bytes.hpp>

inline constexpr plan llama3_8b{
    .model =
        models::llama{
            .layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128256},
    .dims = parallel_dims{.world = 8, .dp_replicate = infer, .tp = 2, .pp = 2, .sequence_parallel = true},
    .schedule = schedules::gpipe{.microbatches = 32},
    .recipe = training{.seq = 8192, .global_batch = 64, .precision = bf16},
    .cluster = cluster{1, 8, fault(141'000'000'000, 1'000'000'000'000), 1e15, 4.5e11, 5e10}};
// error: RC401: the ranks of pipeline rank 0 need 390.1 GB, and there are 141.0 GB: take
//        schedules::one_f_one_b{32}, or recompute={.full = true}
static_assert(fits<llama3_8b>);
