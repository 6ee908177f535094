// SPDX-License-Identifier: Apache-2.0
// The compiler reports all broken rules at once.
#include "reject.hpp"

inline constexpr models::llama odd_heads{
    .layers = 2, .hidden = fault(28, 32), .heads = 4, .kv_heads = 2, .ffn = 64, .vocab = 64};
inline constexpr plan three_faults{.model = odd_heads,
                                   .dims = parallel_dims{.world = fault(8, 4), .tp = 2, .pp = 2},
                                   .schedule = one_microbatch,
                                   .recipe = training{.seq = 8, .global_batch = fault(0, 4)},
                                   .cluster = clusters::cpu};
// error: RC101: pp(2) * tp(2) is not world=8: take pp=4, or tp=4, or world=4, or dp_replicate=infer. RC205:
//        head_dim=7 is odd, but rotary positions rotate pairs of elements: take hidden=24 or hidden=32, or
//        heads=2 or heads=14. RC220: global_batch=0; a step has at least 1 sequence: take global_batch=1 or
//        global_batch=2
static_assert(valid<three_faults>);

inline constexpr models::llama odd_sizes{
    .layers = 1, .hidden = 32, .heads = 4, .kv_heads = 2, .ffn = fault(63, 64), .vocab = fault(65, 64)};
inline constexpr plan two_shards{.model = odd_sizes,
                                 .dims = parallel_dims{.world = 2, .tp = 2},
                                 .schedule = one_microbatch,
                                 .recipe = recipe,
                                 .cluster = clusters::cpu};
// error: RC202: ffn=63 does not divide by tp=2: take tp=1 (with dp_replicate=infer), or ffn=62 or ffn=64.
//        RC202: vocab=65 does not divide by tp=2: take tp=1 (with dp_replicate=infer), or vocab=66 with
//        vocab_used=65
static_assert(valid<two_shards>);
