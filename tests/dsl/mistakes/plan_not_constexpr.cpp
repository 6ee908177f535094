// SPDX-License-Identifier: Apache-2.0
// A plan that is not constexpr is not valid, and the reason is named.
// g++ line 7: required for the satisfaction of 'declared_constexpr<Plan>'
// g++ lines: 12
// clang++ line 5: because gpt does not satisfy 'declared_constexpr'
// clang++ lines: 11
#include <rankc/rankc.hpp>

using namespace rankc;

#ifndef FAULT
constexpr
#endif
    plan gpt{.model = models::gpt2{.layers = 2, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64},
             .dims = parallel_dims{.world = 2, .pp = 2},
             .schedule = schedules::gpipe{.microbatches = 1},
             .recipe = training{.seq = 8, .global_batch = 4},
             .cluster = clusters::cpu};
static_assert(valid<gpt>);
