// SPDX-License-Identifier: Apache-2.0
// A misspelt member of the dims is named on the first line, where their type is written.
// g++ line 1: 'rankc::parallel_dims' has no non-static data member named 'ppp'
// g++ lines: 3
// clang++ line 1: field designator 'ppp' does not refer to any field in type 'parallel_dims'
// clang++ lines: 8
#include <rankc/rankc.hpp>

using namespace rankc;

inline constexpr plan gpt{
    .model = models::gpt2{.layers = 2, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64},
#ifdef FAULT
    .dims = parallel_dims{.world = 2, .ppp = 2},
#else
    .dims = parallel_dims{.world = 2, .pp = 2},
#endif
    .schedule = schedules::gpipe{.microbatches = 1},
    .recipe = training{.seq = 8, .global_batch = 4},
    .cluster = clusters::cpu};
static_assert(valid<gpt>);
