// SPDX-License-Identifier: Apache-2.0
// A misspelt member of the plan is named on the first line.
// g++ line 1: has no non-static data member named 'shedule'
// g++ lines: 15
// clang++ line 1: field designator 'shedule' does not refer to any field in type 'const plan<gpt2, gpipe>'
// clang++ line 1: did you mean 'schedule'?
// clang++ lines: 8
#include <rankc/rankc.hpp>

using namespace rankc;

inline constexpr plan gpt{
    .model = models::gpt2{.layers = 2, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64},
    .dims = parallel_dims{.world = 2, .pp = 2},
#ifdef FAULT
    .shedule = schedules::gpipe{.microbatches = 1},
#else
    .schedule = schedules::gpipe{.microbatches = 1},
#endif
    .recipe = training{.seq = 8, .global_batch = 4},
    .cluster = clusters::cpu};
static_assert(valid<gpt>);
