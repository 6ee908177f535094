// SPDX-License-Identifier: Apache-2.0
// RC1xx: dims and mesh.
#include "reject.hpp"

inline constexpr models::gpt2 gpt{.layers = 4, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64};

constexpr auto meshed(parallel_dims dims, cluster machines = clusters::cpu) {
  return plan{.model = gpt, .dims = dims, .schedule = one_microbatch, .recipe = recipe, .cluster = machines};
}

inline constexpr auto rc101_product_too_small = meshed({.world = fault(8, 4), .tp = 2, .pp = 2});
// error: RC101: pp(2) * tp(2) is not world=8: take pp=4, or tp=4, or world=4, or dp_replicate=infer
static_assert(valid<rc101_product_too_small>);

inline constexpr auto rc101_product_too_large = meshed({.world = 4, .tp = fault(4, 2), .pp = 2});
// error: RC101: pp(2) * tp(4) is not world=4: take pp=1, or tp=2, or world=8
static_assert(valid<rc101_product_too_large>);

inline constexpr auto rc101_no_degree = meshed({.world = fault(2, 1)});
// error: RC101: the degrees multiply to 1 (all are 1), not to world=2: take world=1, or dp_replicate=infer
static_assert(valid<rc101_no_degree>);

inline constexpr auto rc102_nothing_to_infer = meshed({.world = fault(6, 8), .dp_replicate = infer, .tp = 4});
// error: RC102: world=6 is not a multiple of tp(4), so that dp_replicate cannot be inferred: take tp=2 or
//        tp=3, or world=4 or world=8
static_assert(valid<rc102_nothing_to_infer>);

inline constexpr auto rc103_groups_that_gather = meshed(
    {.world = 4, .cp = 4, .ulysses = 2, .cp_attention = fault(cp_attention::gather, cp_attention::ring)});
// error: RC103: ulysses=2 with cp=4 and cp_attention=gather is 2 groups that exchange heads and gather keys
//        and values, which is not lowered in this version: set cp_attention=ring, ulysses=1 or ulysses=4
static_assert(valid<rc103_groups_that_gather>);

inline constexpr auto rc103_axis_outside_world = meshed({.world = 4, .tp = 4, .etp = fault(2, 4)});
// error: RC103: etp=2 with ep=1 and tp=4 is not lowered in this version; experts that are on all ranks are
//        split over tp: set etp=4, or ep above 1
static_assert(valid<rc103_axis_outside_world>);

inline constexpr auto rc104_degree_zero = meshed({.tp = fault(0, 1)});
// error: RC104: tp=0; a degree is at least 1, or `infer`
static_assert(valid<rc104_degree_zero>);

inline constexpr auto rc104_world_zero = meshed({.world = fault(0, 1)});
// error: RC104: world=0 ranks; the world has at least 1
static_assert(valid<rc104_world_zero>);

inline constexpr auto rc114_prefetch_below_zero =
    meshed({.world = 2, .dp_shard = 2, .prefetch = fault(-1, 0)});
// error: RC114: prefetch=-1; weights are gathered for 0 or more layers ahead: 1 is usual, 0 takes least
//        memory
static_assert(valid<rc114_prefetch_below_zero>);

inline constexpr auto rc105_two_inferred = meshed({.world = 4, .dp_replicate = infer, .tp = fault(infer, 2)});
// error: RC105: 2 degrees are `infer`; the world size determines one at most
static_assert(valid<rc105_two_inferred>);

inline constexpr auto rc106_sequence_parallel_without_tp =
    meshed({.world = 2, .pp = 2, .sequence_parallel = fault(true, false)});
// error: RC106: sequence_parallel=true has no effect with tp=1: take sequence_parallel=false
static_assert(valid<rc106_sequence_parallel_without_tp>);

inline constexpr auto rc107_rings = meshed({.world = fault(4, 1), .cp = fault(4, 1), .ulysses = fault(3, 1)});
// error: RC107: cp=4 does not divide into rings of ulysses=3 (cp = ring * ulysses): take ulysses=2 or
//        ulysses=4. RC202: heads=4 does not divide by ulysses=3: take ulysses=2 or ulysses=4
static_assert(valid<rc107_rings>);

inline constexpr auto rc108_expert_groups =
    meshed({.world = fault(8, 1), .dp_replicate = fault(2, 1), .tp = fault(4, 1), .etp = fault(8, 1)});
// error: RC108: ep * etp = 8 does not divide the ranks that experts are spread over, 4 (dp_shard * cp * tp):
//        take etp=2 or etp=4, or dp_shard=2 (with dp_replicate=infer), or expert_layout=folded_over_replicas
static_assert(valid<rc108_expert_groups>);

/// The views of a layout share their axes by construction; these two do not.
struct two_views {
  int stages;
  constexpr report diagnose() const {
    report out;
    check_shared_axes(out, {{mesh_axis::pp, 2}, {mesh_axis::tp, 4}},
                      {{mesh_axis::pp, stages}, {mesh_axis::etp, 8 / stages}});
    return out;
  }
};
inline constexpr two_views rc109_unequal_axes{fault(4, 2)};
// error: RC109: axis pp of the dense view has size 2 and stride 4, and of the expert view 4 and 2; an axis of
//        both views must have the same groups
static_assert(valid<rc109_unequal_axes>);

inline constexpr auto rc110_cluster_too_small = meshed({.world = 4, .pp = 4}, cluster{fault(1, 2), 2, 0, 0});
// error: RC110: world=4 is more than the cluster's 1 nodes of 2 ranks: take nodes=2 or nodes=3
static_assert(valid<rc110_cluster_too_small>);

inline constexpr auto rc121_no_nodes = meshed({}, cluster{fault(0, 1), 1, 0, 0});
// error: RC121: the cluster has nodes=0; it has at least 1
static_assert(valid<rc121_no_nodes>);

inline constexpr auto rc121_negative_memory = meshed({}, cluster{1, 1, fault(-1, 0), 0});
// error: RC121: the cluster has memory=-1; it is in bytes per rank, and 0 is not checked
static_assert(valid<rc121_negative_memory>);

inline constexpr auto rc121_no_number = meshed(
    {}, cluster{1, 1, 0, fault(std::numeric_limits<double>::quiet_NaN(), 1e12), fault(-4.5e11, 4.5e11)});
// error: RC121: the cluster has flops=nan; it is finite and at least 0, and 0 is unknown. RC121: the cluster
//        has within_node=-4.5e11; it is finite and at least 0, and 0 is unknown
static_assert(valid<rc121_no_number>);
