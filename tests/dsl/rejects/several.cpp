// SPDX-License-Identifier: Apache-2.0
// All broken rules are said at once.
#include "reject.hpp"

inline constexpr models::llama odd_heads{.layers = 2, .hidden = fault(28, 32), .heads = 4, .kv_heads = 2, .ffn = 64, .vocab = 64};
using three_faults = plan<odd_heads, parallel_dims{.world = fault(8, 4), .tp = 2, .pp = 2}, one_microbatch,
                          training{.seq = 8, .global_batch = fault(0, 4)}, clusters::cpu>;
static_assert(valid<three_faults>);  // error: RC101: pp(2) * tp(2) is not world=8; multiply one degree by 2, or write dp_replicate=infer. RC205: head_dim=7 is odd, but rotary positions turn pairs of elements; hidden can be a multiple of 2 * heads: 32. RC220: seq=8 and global_batch=0 must both be at least 1

inline constexpr models::llama odd_sizes{.layers = 1, .hidden = 32, .heads = 4, .kv_heads = 2, .ffn = fault(63, 64), .vocab = fault(65, 64)};
using two_shards = plan<odd_sizes, parallel_dims{.world = 2, .tp = 2}, one_microbatch, recipe, clusters::cpu>;
static_assert(valid<two_shards>);  // error: RC202: vocab=65 does not divide by tp=2; divisors of 65 are 1, 5, 13, 65, multiples of 2 are 64 and 66. RC202: ffn=63 does not divide by tp=2; divisors of 63 are 1, 3, 7, 9, 21, 63, multiples of 2 are 62 and 64
