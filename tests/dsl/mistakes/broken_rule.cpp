// SPDX-License-Identifier: Apache-2.0
// A plan that breaks a rule: the user's line comes first, and the sentence before the compiler's own words.
// g++ line 1: error: static assertion failed
// g++ line 8: "RC202: heads=4 does not divide by tp=8: take tp=2 or tp=4 (with dp_replicate=infer), or
// g++ lines: 10
// clang++ line 1: error: static assertion failed
// clang++ line 4: because gpt does not satisfy 'valid'
// clang++ line 8: "RC202: heads=4 does not divide by tp=8: take tp=2 or tp=4 (with dp_replicate=infer), or
// clang++ lines: 11
#include <rankc/rankc.hpp>

using namespace rankc;

#ifdef FAULT
inline constexpr int tp = 8;
#else
inline constexpr int tp = 4;
#endif
inline constexpr plan gpt{
    .model = models::gpt2{.layers = 2, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64},
    .dims = parallel_dims{.world = tp, .tp = tp},
    .schedule = schedules::gpipe{.microbatches = 1},
    .recipe = training{.seq = 8, .global_batch = 4},
    .cluster = clusters::cpu};
static_assert(valid<gpt>);
