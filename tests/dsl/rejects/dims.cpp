// SPDX-License-Identifier: Apache-2.0
// RC1xx: dims and mesh.
#include "reject.hpp"

inline constexpr models::gpt2 gpt{.layers = 4, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64};

template <parallel_dims Dims, cluster Cluster = clusters::cpu>
using meshed = plan<gpt, Dims, one_microbatch, recipe, Cluster>;

using rc101_product_too_small = meshed<parallel_dims{.world = fault(8, 4), .tp = 2, .pp = 2}>;
static_assert(valid<rc101_product_too_small>);  // error: RC101: pp(2) * tp(2) is not world=8: take pp=4, or tp=4, or world=4, or dp_replicate=infer

using rc101_product_too_large = meshed<parallel_dims{.world = 4, .tp = fault(4, 2), .pp = 2}>;
static_assert(valid<rc101_product_too_large>);  // error: RC101: pp(2) * tp(4) is not world=4: take pp=1, or tp=2, or world=8

using rc101_no_degree = meshed<parallel_dims{.world = fault(2, 1)}>;
static_assert(valid<rc101_no_degree>);  // error: RC101: 1 is not world=2: take world=1, or dp_replicate=infer

using rc102_nothing_to_infer = meshed<parallel_dims{.world = fault(6, 8), .dp_replicate = infer, .tp = 4}>;
static_assert(valid<rc102_nothing_to_infer>);  // error: RC102: world=6 is not a multiple of tp(4), so that dp_replicate cannot be inferred: take tp=2 or tp=3, or world=4 or world=8

using rc103_axis_not_lowered = meshed<parallel_dims{.world = 2, .dp_replicate = infer, .dp_shard = fault(2, 1)}>;
static_assert(valid<rc103_axis_not_lowered>);  // error: RC103: dp_shard=2 is not lowered in this version; dp_replicate, tp and pp are: set dp_shard=1

using rc103_axis_outside_world = meshed<parallel_dims{.world = 2, .tp = 2, .etp = fault(2, 1)}>;
static_assert(valid<rc103_axis_outside_world>);  // error: RC103: etp=2 is not lowered in this version; dp_replicate, tp and pp are: set etp=1

using rc104_degree_zero = meshed<parallel_dims{.tp = fault(0, 1)}>;
static_assert(valid<rc104_degree_zero>);  // error: RC104: tp=0; a degree is at least 1, or `infer`

using rc104_world_zero = meshed<parallel_dims{.world = fault(0, 1)}>;
static_assert(valid<rc104_world_zero>);  // error: RC104: world=0 ranks; the world has at least 1

using rc105_two_inferred = meshed<parallel_dims{.world = 4, .dp_replicate = infer, .tp = fault(infer, 2)}>;
static_assert(valid<rc105_two_inferred>);  // error: RC105: 2 degrees are `infer`; the world size determines one at most

using rc106_sequence_parallel_without_tp = meshed<parallel_dims{.world = 2, .pp = 2, .sequence_parallel = fault(true, false)}>;
static_assert(valid<rc106_sequence_parallel_without_tp>);  // error: RC106: sequence_parallel=true with tp=1 shards nothing: take sequence_parallel=false

using rc107_rings = meshed<parallel_dims{.world = fault(4, 1), .cp = fault(4, 1), .ulysses = fault(3, 1)}>;
static_assert(valid<rc107_rings>);  // error: RC107: cp=4 does not divide into rings of ulysses=3 (cp = ring * ulysses): take ulysses=2 or ulysses=4. RC202: heads=4 does not divide by ulysses=3: take ulysses=2 or ulysses=4

using rc108_expert_groups = meshed<parallel_dims{.world = fault(8, 1), .dp_replicate = fault(2, 1), .tp = fault(4, 1), .etp = fault(8, 1)}>;
static_assert(valid<rc108_expert_groups>);  // error: RC108: ep * etp = 8 does not divide the ranks that experts are spread over, 4 (dp_shard * cp * tp): take etp=2 or etp=4, or dp_shard=2 (with dp_replicate=infer), or expert_layout=folded_over_replicas

/// The views of a layout share their axes by construction; these do not.
template <int Stages>
struct two_views {
  static constexpr report diagnose() {
    report out;
    check_shared_axes(out, {{mesh_axis::pp, 2}, {mesh_axis::tp, 4}}, {{mesh_axis::pp, Stages}, {mesh_axis::etp, 8 / Stages}});
    return out;
  }
};
using rc109_unequal_axes = two_views<fault(4, 2)>;
static_assert(valid<rc109_unequal_axes>);  // error: RC109: axis pp of the dense view has size 2 and stride 4, and of the expert view 4 and 2; an axis of both has the same groups

using rc110_cluster_too_small = meshed<parallel_dims{.world = 4, .pp = 4}, cluster{fault(1, 2), 2, 0, 0}>;
static_assert(valid<rc110_cluster_too_small>);  // error: RC110: world=4 is more than the cluster's 1 nodes of 2 ranks: take nodes=2 or nodes=3
