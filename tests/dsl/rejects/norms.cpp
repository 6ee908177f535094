// SPDX-License-Identifier: Apache-2.0
// RC280: norms over all heads, which tp shards.
#include <rankc/models/olmo2.hpp>

#include "reject.hpp"

inline constexpr plan norm_over_all_heads{
    .model = models::olmo2{.layers = 1, .hidden = 8, .heads = 4, .kv_heads = 2, .ffn = 8, .vocab = 16},
    .dims = {.world = 2, .dp_replicate = infer, .tp = fault(2, 1)},
    .schedule = one_microbatch,
    .recipe = training{.seq = 8, .global_batch = 4},
    .cluster = clusters::cpu};
// error: RC280: rms_norm of layer 'block' is over all of heads, which tp=2 shards, and this version does not
//        sum squares over ranks: take tp=1, all_gather the value and declare its weights without a shard, or
//        take a norm of each head (qk_norm_kind::head)
static_assert(valid<norm_over_all_heads>);
