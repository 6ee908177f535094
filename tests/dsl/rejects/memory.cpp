// SPDX-License-Identifier: Apache-2.0
// RC401: ranks that need more memory than there is, and what would fit.
#include "reject.hpp"

#include <rankc/peak_bytes.hpp>

inline constexpr models::gpt2 byte_model{.layers = 8, .hidden = 1024, .heads = 16, .ffn = 4096, .vocab = 256};
inline constexpr training long_rows{.seq = 1024, .global_batch = 32};
constexpr cluster gpus(long long memory) { return {1, 8, memory, 1e14, 1e11, 1e10}; }
template <int Tp, int Microbatches, long long TooLittle>
inline constexpr plan small{.model = byte_model,
                            .dims = parallel_dims{.world = 2, .dp_replicate = infer, .tp = Tp},
                            .schedule = schedules::one_f_one_b{.microbatches = Microbatches},
                            .recipe = long_rows,
                            .cluster = gpus(fault(TooLittle, 141'000'000'000ll))};

// error: RC401: the ranks of pipeline rank 0 need 6.3 GB, and there are 4.7 GB: take microbatches=8 or
//        microbatches=16, or recompute={.full = true}
static_assert(valid<small<1, 2, 4'700'000'000>>);
// error: RC401: the ranks of pipeline rank 0 need 4.3 GB, and there are 3.8 GB: take tp=2
static_assert(valid<small<1, 16, 3'800'000'000>>);

// GPipe holds the activations of all microbatches.
inline constexpr plan holds_all{.model = byte_model,
                                .dims = parallel_dims{.world = 2, .pp = 2},
                                .schedule = schedules::gpipe{.microbatches = 16},
                                .recipe = training{.seq = 1024, .global_batch = 16},
                                .cluster = gpus(fault(5'000'000'000ll, 141'000'000'000ll))};
// error: RC401: the ranks of pipeline rank 1 need 6.9 GB, and there are 5.0 GB: take
//        schedules::one_f_one_b{16}, or recompute={.full = true}
static_assert(valid<holds_all>);

// By cost five layers stand against three and the head.
inline constexpr models::gpt2 large_head{
    .layers = 8, .hidden = 1024, .heads = 16, .ffn = 4096, .vocab = 32768};
inline constexpr plan split_by_cost{.model = large_head,
                                    .dims = parallel_dims{.world = 2, .pp = 2},
                                    .schedule = schedules::one_f_one_b{.microbatches = 2},
                                    .recipe = training{.seq = 1024, .global_batch = 2},
                                    .cluster = gpus(fault(5'700'000'000ll, 141'000'000'000ll))};
// error: RC401: the ranks of pipeline rank 0 need 5.9 GB, and there are 5.7 GB: take stage_layers{4, 4}, or
//        recompute={.full = true}
static_assert(valid<split_by_cost>);
