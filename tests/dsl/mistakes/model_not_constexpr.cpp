// SPDX-License-Identifier: Apache-2.0
// A model that is not constexpr is named; clang quotes the whole plan first.
// g++ line 1: the value of 'model' is not usable in a constant expression
// g++ line 4: 'model' was not declared 'constexpr'
// g++ lines: 18
// clang++ line 1: constexpr variable 'gpt' must be initialized by a constant expression
// clang++ line 12: read of non-constexpr variable 'model' is not allowed in a constant expression
// clang++ lines: 30
#include <rankc/rankc.hpp>

using namespace rankc;

#ifndef FAULT
constexpr
#endif
    models::gpt2 model{.layers = 2, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64};
inline constexpr plan gpt{.model = model,
                          .dims = parallel_dims{.world = 2, .pp = 2},
                          .schedule = schedules::gpipe{.microbatches = 1},
                          .recipe = training{.seq = 8, .global_batch = 4},
                          .cluster = clusters::cpu};
static_assert(valid<gpt>);
