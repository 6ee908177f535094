// SPDX-License-Identifier: Apache-2.0
// A schedule whose header is not included: the compiler shows the line that names the header.
// g++ line 1: error:
// g++ line 8: // not defined: #include <rankc/schedules/zero_bubble_v.hpp>
// g++ lines: 9
// clang++ line 1: invalid use of incomplete type 'schedules::zero_bubble_v'
// clang++ line 5: // not defined: #include <rankc/schedules/zero_bubble_v.hpp>
// clang++ lines: 7
#include <rankc/rankc.hpp>
#ifndef FAULT
#include <rankc/schedules/zero_bubble_v.hpp>
#endif

using namespace rankc;

inline constexpr plan gpt{
    .model = models::gpt2{.layers = 4, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64},
    .dims = parallel_dims{.world = 2, .pp = 2},
    .schedule = schedules::zero_bubble_v{.microbatches = 4},
    .recipe = training{.seq = 8, .global_batch = 8},
    .cluster = clusters::cpu};
static_assert(valid<gpt>);
