// SPDX-License-Identifier: Apache-2.0
// RC401: the compiler refuses a plan whose ranks need more memory than a GPU has, and names changes that fit.
// peak_bytes_test.cpp has the other changes, at run time.
#include "reject.hpp"

#include <rankc/peak_bytes.hpp>

inline constexpr plan small{
    .model = models::gpt2{.layers = 8, .hidden = 1024, .heads = 16, .ffn = 4096, .vocab = 256},
    .dims = parallel_dims{.world = 2, .dp_replicate = infer, .tp = 1},
    .schedule = schedules::one_f_one_b{.microbatches = 2},
    .recipe = training{.seq = 1024, .global_batch = 32},
    .cluster = cluster{1, 8, fault(4'700'000'000, 141'000'000'000), 1e14, 1e11, 1e10}};
// error: RC401: the ranks of pipeline rank 0 need 6.3 GB, and there are 4.7 GB: take microbatches=8 or
//        microbatches=16, or recompute={.full = true}
static_assert(fits<small>);
static_assert(valid<small>);  // in every file, `fits` alone checks memory
