// SPDX-License-Identifier: Apache-2.0
// The layout of legal dims: the dense and the expert view of one span of ranks, coordinates in both, and the groups of
// every axis and alias. An alias is always defined, possibly of size 1.
#pragma once
#include <rankc/dims.hpp>
#include <rankc/mesh/group.hpp>

namespace rankc {

/// A rank's index along one axis. It is no number: only a layout turns it into a rank.
template <mesh_axis Axis>
struct along {
  int index = 0;
  constexpr along() = default;
  explicit constexpr along(int i) : index(i) {}
  constexpr bool operator==(const along&) const = default;
};

/// Coordinates in the dense view. `ep` is 0 but in the independent expert layout.
struct coord {
  along<mesh_axis::pp> pp{};
  along<mesh_axis::dp_replicate> dp_replicate{};
  along<mesh_axis::dp_shard> dp_shard{};
  along<mesh_axis::ep> ep{};
  along<mesh_axis::ring> ring{};
  along<mesh_axis::ulysses> ulysses{};
  along<mesh_axis::tp> tp{};
  constexpr bool operator==(const coord&) const = default;
};

/// Coordinates in the expert view.
struct expert_coord {
  along<mesh_axis::pp> pp{};
  along<mesh_axis::edp_replicate> edp_replicate{};
  along<mesh_axis::edp_shard> edp_shard{};
  along<mesh_axis::ep> ep{};
  along<mesh_axis::edp_inner> edp_inner{};
  along<mesh_axis::etp> etp{};
  constexpr bool operator==(const expert_coord&) const = default;
};

/// What groups are asked for by. Each axis is one; the others join axes.
///   cp ring and ulysses; dp = batch every rank with data of its own; loss dp and cp; fsdp the ranks that shard a dense
///   weight; replicas those that hold the same shard; efsdp and expert_replicas the same of an expert's weights; edp all
///   that hold parts or copies of one expert; model tp and pp; embedding the first and the last pipeline stage.
enum class alias : unsigned char {
  pp, dp_replicate, dp_shard, ring, ulysses, tp, edp_replicate, edp_shard, ep, edp_inner, etp,
  cp, dp, batch, fsdp, replicas, loss, dp_cp, tp_cp, tp_dp, model, efsdp, expert_replicas, edp, ep_etp, embedding
};
inline constexpr std::string_view alias_names[]{
    "pp", "dp_replicate", "dp_shard", "ring", "ulysses", "tp", "edp_replicate", "edp_shard", "ep", "edp_inner", "etp",
    "cp", "dp", "batch", "fsdp", "replicas", "loss", "dp_cp", "tp_cp", "tp_dp", "model", "efsdp", "expert_replicas",
    "edp", "ep_etp", "embedding"};
inline constexpr int n_aliases = static_cast<int>(sizeof alias_names / sizeof *alias_names);
constexpr std::string_view name(alias a) { return alias_names[static_cast<int>(a)]; }

namespace detail {
constexpr int index_along(const view& v, mesh_axis a, int rank) {
  const axis_extent* x = v.find(a);
  return x ? x->index_of(rank) : 0;
}
template <mesh_axis Axis>
constexpr int offset(const view& v, along<Axis> i) {
  const axis_extent* x = v.find(Axis);
  return x ? i.index * x->stride : 0;
}
}  // namespace detail

/// The views, coordinates and groups of dims that `check_dims` accepts, resolved.
class layout {
 public:
  explicit constexpr layout(const parallel_dims& d) : dims_(d) {
    using enum mesh_axis;
    const bool independent = d.expert_layout == expert_layout::independent;
    dense_ = independent ? view{{pp, d.pp}, {dp_replicate, d.dp_replicate}, {dp_shard, d.dp_shard}, {ep, d.ep},
                                {ring, d.cp / d.ulysses}, {ulysses, d.ulysses}, {tp, d.tp}}
                         : view{{pp, d.pp}, {dp_replicate, d.dp_replicate}, {dp_shard, d.dp_shard},
                                {ring, d.cp / d.ulysses}, {ulysses, d.ulysses}, {tp, d.tp}};
    const int replicas = d.expert_layout == expert_layout::folded_over_replicas ? 1 : d.dp_replicate;
    const int rest = static_cast<int>(expert_region(d)) / (d.ep * d.etp);
    expert_ = independent ? view{{pp, d.pp}, {edp_replicate, replicas}, {edp_shard, d.dp_shard}, {ep, d.ep},
                                 {edp_inner, rest}, {etp, d.etp}}
                          : view{{pp, d.pp}, {edp_replicate, replicas}, {edp_shard, rest}, {ep, d.ep}, {etp, d.etp}};
  }

  constexpr const parallel_dims& dims() const { return dims_; }
  constexpr int ranks() const { return dense_.span(); }
  constexpr const view& dense() const { return dense_; }
  constexpr const view& expert() const { return expert_; }

  constexpr group_shape groups(alias a) const {
    using enum mesh_axis;
    const bool cp_shards = dims_.cp_weights == cp_weights::shard;
    switch (a) {
      case alias::pp: return {dense_, {pp}};
      case alias::dp_replicate: return {dense_, {dp_replicate}};
      case alias::dp_shard: return {dense_, {dp_shard}};
      case alias::ring: return {dense_, {ring}};
      case alias::ulysses: return {dense_, {ulysses}};
      case alias::tp: return {dense_, {tp}};
      case alias::edp_replicate: return {expert_, {edp_replicate}};
      case alias::edp_shard: return {expert_, {edp_shard}};
      case alias::ep: return {expert_, {ep}};
      case alias::edp_inner: return {expert_, {edp_inner}};
      case alias::etp: return {expert_, {etp}};
      case alias::cp: return {dense_, {ring, ulysses}};
      case alias::dp:
      case alias::batch: return {dense_, {dp_replicate, dp_shard}};
      case alias::fsdp: return cp_shards ? group_shape{dense_, {dp_shard, ring, ulysses}} : group_shape{dense_, {dp_shard}};
      case alias::replicas: return cp_shards ? group_shape{dense_, {dp_replicate}} : group_shape{dense_, {dp_replicate, ring, ulysses}};
      case alias::loss:
      case alias::dp_cp: return {dense_, {dp_replicate, dp_shard, ring, ulysses}};
      case alias::tp_cp: return {dense_, {ring, ulysses, tp}};
      case alias::tp_dp: return {dense_, {dp_replicate, dp_shard, tp}};
      case alias::model: return {dense_, {pp, tp}};
      case alias::efsdp: return {expert_, {edp_shard, edp_inner}};
      case alias::expert_replicas: return {expert_, {edp_replicate}};
      case alias::edp: return {expert_, {edp_replicate, edp_shard, edp_inner}};
      case alias::ep_etp: return {expert_, {ep, etp}};
      case alias::embedding: return group_shape::ends(dims_.pp, ranks() / dims_.pp);
    }
    return {};
  }

  constexpr coord at(int rank) const {
    using enum mesh_axis;
    const auto index = [&](mesh_axis a) { return detail::index_along(dense_, a, rank); };
    return {along<pp>{index(pp)}, along<dp_replicate>{index(dp_replicate)}, along<dp_shard>{index(dp_shard)},
            along<ep>{index(ep)}, along<ring>{index(ring)}, along<ulysses>{index(ulysses)}, along<tp>{index(tp)}};
  }
  constexpr expert_coord expert_at(int rank) const {
    using enum mesh_axis;
    const auto index = [&](mesh_axis a) { return detail::index_along(expert_, a, rank); };
    return {along<pp>{index(pp)}, along<edp_replicate>{index(edp_replicate)}, along<edp_shard>{index(edp_shard)},
            along<ep>{index(ep)}, along<edp_inner>{index(edp_inner)}, along<etp>{index(etp)}};
  }
  /// The rank at a coordinate.
  constexpr int flat(const coord& c) const {
    const auto over = [&](auto... i) { return (detail::offset(dense_, i) + ...); };
    return over(c.pp, c.dp_replicate, c.dp_shard, c.ep, c.ring, c.ulysses, c.tp);
  }
  constexpr int flat(const expert_coord& c) const {
    const auto over = [&](auto... i) { return (detail::offset(expert_, i) + ...); };
    return over(c.pp, c.edp_replicate, c.edp_shard, c.ep, c.edp_inner, c.etp);
  }

 private:
  parallel_dims dims_;
  view dense_, expert_;
};

/// A rank's node and GPU in a cluster whose nodes have `per_node` ranks, filled in order.
struct node_index { int index = 0; constexpr bool operator==(const node_index&) const = default; };
struct gpu_index { int index = 0; constexpr bool operator==(const gpu_index&) const = default; };
struct machine_coord {
  node_index node;
  gpu_index gpu;
  constexpr bool operator==(const machine_coord&) const = default;
};
constexpr machine_coord place_of(int rank, int per_node) { return {{rank / per_node}, {rank % per_node}}; }

}  // namespace rankc
