// SPDX-License-Identifier: Apache-2.0
// Members out of order are named on the first line; clang takes them, with a warning that is an error here.
// g++ line 1: designator order for field 'rankc::plan
// g++ line 1: does not match declaration order
// g++ lines: 13
// clang++ line 1: field 'cluster' will be initialized after field 'recipe'
// clang++ lines: 8
#include <rankc/rankc.hpp>

using namespace rankc;

inline constexpr plan gpt{
    .model = models::gpt2{.layers = 2, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64},
    .dims = parallel_dims{.world = 2, .pp = 2},
    .schedule = schedules::gpipe{.microbatches = 1},
#ifdef FAULT
    .cluster = clusters::cpu,
#endif
    .recipe = training{.seq = 8, .global_batch = 4},
#ifndef FAULT
    .cluster = clusters::cpu,
#endif
};
static_assert(valid<gpt>);
