// SPDX-License-Identifier: Apache-2.0
// RC1xx: dims and mesh.
#include "reject.hpp"

inline constexpr models::gpt2 gpt{.layers = 4, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64};

template <parallel_dims Dims, cluster Cluster = clusters::cpu>
using meshed = plan<gpt, Dims, one_microbatch, recipe, Cluster>;

using rc101_product_too_small = meshed<parallel_dims{.world = fault(8, 4), .tp = 2, .pp = 2}>;
static_assert(valid<rc101_product_too_small>);  // error: RC101: pp(2) * tp(2) is not world=8; multiply one degree by 2, or write dp_replicate=infer

using rc101_product_too_large = meshed<parallel_dims{.world = 4, .tp = fault(4, 2), .pp = 2}>;
static_assert(valid<rc101_product_too_large>);  // error: RC101: pp(2) * tp(4) is not world=4; the product of the degrees must be the world size

using rc101_no_degree = meshed<parallel_dims{.world = fault(2, 1)}>;
static_assert(valid<rc101_no_degree>);  // error: RC101: 1 is not world=2; multiply one degree by 2, or write dp_replicate=infer

using rc102_nothing_to_infer = meshed<parallel_dims{.world = fault(6, 8), .dp_replicate = infer, .tp = 4}>;
static_assert(valid<rc102_nothing_to_infer>);  // error: RC102: world=6 is not a multiple of tp(4), so that dp_replicate cannot be inferred; the product of the others must be a divisor of the world: 1, 2, 3, 6

using rc103_axis_not_lowered = meshed<parallel_dims{.world = 2, .dp_replicate = infer, .dp_shard = fault(2, 1)}>;
static_assert(valid<rc103_axis_not_lowered>);  // error: RC103: dp_shard=2 is not lowered in this version; dp_replicate, tp and pp are: set dp_shard=1

using rc103_axis_outside_world = meshed<parallel_dims{.world = 2, .tp = 2, .ep = fault(2, 1)}>;
static_assert(valid<rc103_axis_outside_world>);  // error: RC103: ep=2 is not lowered in this version; dp_replicate, tp and pp are: set ep=1

using rc104_degree_zero = meshed<parallel_dims{.tp = fault(0, 1)}>;
static_assert(valid<rc104_degree_zero>);  // error: RC104: tp=0; a degree is at least 1, or `infer`

using rc104_world_zero = meshed<parallel_dims{.world = fault(0, 1)}>;
static_assert(valid<rc104_world_zero>);  // error: RC104: world=0 ranks; the world has at least 1

using rc105_two_inferred = meshed<parallel_dims{.world = 4, .dp_replicate = infer, .tp = fault(infer, 2)}>;
static_assert(valid<rc105_two_inferred>);  // error: RC105: 2 degrees are `infer`; the world size determines one at most

using rc106_sequence_parallel_without_tp = meshed<parallel_dims{.world = 2, .pp = 2, .sequence_parallel = fault(true, false)}>;
static_assert(valid<rc106_sequence_parallel_without_tp>);  // error: RC106: sequence_parallel=true with tp=1 shards nothing; set tp > 1 or leave it out

using rc110_cluster_too_small = meshed<parallel_dims{.world = 4, .pp = 4}, cluster{fault(1, 2), 2, 0, 0}>;
static_assert(valid<rc110_cluster_too_small>);  // error: RC110: world=4 is more than the cluster's 1 nodes of 2 ranks; the world can be at most 2
