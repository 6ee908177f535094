// SPDX-License-Identifier: Apache-2.0
// RC258: the capacity of experts, and the tokens that it is computed from.
#include "reject.hpp"

constexpr models::mixtral limited(double capacity, int group, int experts = 4, router_losses losses = {},
                                  overflow full = overflow::drop) {
  return {.layers = 2,
          .hidden = 32,
          .heads = 4,
          .kv_heads = 4,
          .experts = experts,
          .top_k = 1,
          .expert_ffn = 16,
          .vocab = 64,
          .router_losses = losses,
          .capacity = capacity,
          .capacity_group = group,
          .overflow = full};
}
constexpr auto planned(const models::mixtral& model, const parallel_dims& dims = {}) {
  return plan{.model = model,
              .dims = dims,
              .schedule = one_microbatch,
              .recipe = training{.seq = 16, .global_batch = 4, .precision = f32},
              .cluster = clusters::cpu};
}

inline constexpr auto negative = planned(limited(fault(-1.0, 1.25), 0));
// error: RC258: capacity=-1; it multiplies the equal share of the picks of each expert: 1 and 1.25 are usual,
//        0 drops nothing, and 1000000 is the maximum
static_assert(valid<negative>);

inline constexpr auto group_of_none = planned(limited(fault(0.0, 1.0), 8));
// error: RC258: capacity_group=8 with capacity=0, which drops nothing; leave it out, or set a capacity
static_assert(valid<group_of_none>);

inline constexpr auto negative_group = planned(limited(1, fault(-8, 8)));
// error: RC258: capacity_group=-8; it is a number of tokens, at least 1, or 0 for whole sequences
static_assert(valid<negative_group>);

inline constexpr auto one_expert = planned(limited(1, 0, fault(1, 2)));
// error: RC258: capacity=1 with experts=1; a capacity needs at least 2 experts
static_assert(valid<one_expert>);

inline constexpr auto local_losses =
    planned(limited(1, 0, 4, {.balance = 0.01, .local = fault(true, false)}));
// error: RC258: capacity=1 with router_losses.local=true, whose sums are of the tokens of one rank; picks
//        that are dropped are counted over the batch: local=false
static_assert(valid<local_losses>);

inline constexpr auto failing_without = planned(limited(0, 0, 4, {}, fault(overflow::fail, overflow::drop)));
// error: RC258: overflow=fail with capacity=0, which drops nothing; set a capacity, usually 1.25, or leave
//        overflow out
static_assert(valid<failing_without>);

// ---- groups that ranks would shard

inline constexpr auto part_of_a_sequence = planned(limited(1, fault(12, 8)));
// error: RC258: a capacity group of 12 positions must be contiguous on one rank and divide seq=16: take
//        capacity_group=8 or capacity_group=16
static_assert(valid<part_of_a_sequence>);

inline constexpr auto sequences_over_cp = planned(limited(1, fault(0, 4)), {.world = 2, .cp = 2});
// error: RC258: a capacity group of 16 positions must be contiguous on one rank and divide seq=16, of which a
//        rank of cp=2 has two chunks: take capacity_group=2 or capacity_group=4
static_assert(valid<sequences_over_cp>);

inline constexpr auto sequences_over_tp =
    planned(limited(1, fault(0, 4)),
            {.world = 16, .dp_replicate = 2, .dp_shard = 2, .tp = 4, .ep = 4, .sequence_parallel = true});
// error: RC258: a capacity group of 16 positions must be contiguous on one rank and divide seq=16, which is
//        sharded over tp=4 (sequence_parallel): take capacity_group=2 or capacity_group=4
static_assert(valid<sequences_over_tp>);
