// SPDX-License-Identifier: Apache-2.0
// A layer's parameters on one rank, and their offsets.
#pragma once
#include <rankc/lowering/local_shape.hpp>
#include <rankc/stages/plan_data.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

namespace rankc::lowering {

/// The axes of more than one rank that shard the features of a dim, and the number of their ranks.
struct dim_shards {
  axis_set over{};
  int ranks = 1;
};

/// A parameter of a layer, sized for one rank.
struct layer_parameter {
  parameter_name name;
  int rows = 1, cols = 1, ndim = 1;  // the shape that layers read
  int shards = 1;                    // number of ranks that shard it (FSDP)
  // Rows of one shard, and of all shards together. The last rows of the latter are padding.
  int shard_rows = 1, stored_rows = 1;
  dim_shards shards_of_dim[2]{};  // for rows and columns: shards within a tensor-parallel region or over etp
  bool experts = false;           // sharded over ep; `rows` are those of the rank's experts
  bool differs_over_region = false;    // each rank of a region has a different part
  bool differs_over_replicas = false;  // dense replicas have different experts, or different columns of them
  bool differs_over_ep = false;        // the ep ranks are dense replicas and have different experts
  initial start = initial::zeros;
  double std = 0;
  bool sum_over_region = false;  // its gradient is a partial sum over the ranks of a region
  bool sum_over_dp = false;      // its gradient is a partial sum over the ranks that replicate it
  bool shared = false;           // another layer uses the same tensor
  bool trainable = true;         // false: no gradient is computed
  load_balance balances{};       // a router's bias
  constexpr bool has_sharded_dim() const { return shards_of_dim[0].ranks > 1 || shards_of_dim[1].ranks > 1; }
  constexpr std::size_t elements() const { return static_cast<std::size_t>(rows) * cols; }
  constexpr std::size_t shard() const { return static_cast<std::size_t>(shard_rows) * cols; }
  constexpr bool has_padding() const { return stored_rows != rows; }
  constexpr std::size_t stored() const { return static_cast<std::size_t>(stored_rows) * cols; }
};

/// The groups of a layer's parameters, by how their gradients are reduced: over dp only, over the ranks of a
/// region too, experts, frozen, and shared with another layer. Each group except the last is contiguous in
/// memory.
enum class group : unsigned char { own, over_region, experts, frozen, shared };
inline constexpr int n_groups = 4;  // the contiguous groups

/// The offset of each parameter in its group.
/// Units: elements.
struct group_layout {
  struct place {
    group in = group::own;
    std::size_t offset = 0;  // shared: an index into the list of the layer's shared parameters
  };
  std::vector<place> of_parameter;
  std::size_t size[n_groups]{};
  std::vector<int> shared;  // parameters
};

/// Alignment of tensors, so that kernels can use vector loads with every type.
/// Units: elements.
inline constexpr std::size_t element_alignment = 16;
constexpr std::size_t aligned_elements(std::size_t n) {
  return (n + element_alignment - 1) / element_alignment * element_alignment;
}

constexpr layer_parameter local_parameter(const weight_info& w, const parallel_dims& d) {
  layer_parameter p{.name = w.name,
                    .ndim = w.holds.ndim,
                    .start = w.start,
                    .std = w.std,
                    .trainable = w.trainable,
                    .balances = w.balances};
  int* const sizes[]{&p.rows, &p.cols};
  for (int i = 0; i < w.holds.ndim; ++i) {
    *sizes[i] = w.holds.shape[i].size;
    for (axis a : axes) {
      if (row(a).shares != part::features || w.holds[a] != V(i) || ranks_along(d, a) == 1) continue;
      p.shards_of_dim[i].over = p.shards_of_dim[i].over | a;
      p.shards_of_dim[i].ranks *= ranks_along(d, a);
    }
    *sizes[i] /= p.shards_of_dim[i].ranks;
  }
  p.experts = d.ep > 1 && w.holds[axis::ep] == V(0);
  if (p.experts) p.rows /= d.ep;
  const bool has_regions = region_ranks(d) > 1;
  p.differs_over_region = has_regions && (p.has_sharded_dim() || p.experts);
  p.shards = p.experts ? expert_weight_shards(d) : weight_shards(d);
  p.shard_rows = (p.rows + p.shards - 1) / p.shards;
  p.stored_rows = p.shard_rows * p.shards;
  p.sum_over_region = !p.experts && w.has_gradient && w.gradient[region_axis] == P && has_regions;
  const auto is_part = [&](axis a) { return w.has_gradient && w.gradient[a] == P && d.*row(a).degree > 1; };
  const bool joins_shards = d.cp_weights == cp_weights::shard;
  p.differs_over_replicas = p.experts && spreads_experts_over_replicas(d);
  p.differs_over_ep = p.experts && repeats_tokens(d);
  bool is_part_of_replicas = !joins_shards && is_part(axis::cp);
  for (axis a : axes) is_part_of_replicas |= holds_replicas(row(a)) && is_part(a);
  p.sum_over_dp = !p.differs_over_replicas && is_part_of_replicas;
  return p;
}

/// The parameters of one kind of layer.
constexpr std::vector<layer_parameter> local_parameters(const std::vector<layer_kind>& kinds,
                                                        std::size_t kind, const parallel_dims& d) {
  std::vector<layer_parameter> parameters;
  const layer_kind& layer = kinds[kind];
  for (const weight_info& w : layer.ops.weights) {
    layer_parameter& p = parameters.emplace_back(local_parameter(w, d));
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      if (k == kind) continue;
      for (const weight_info& o : kinds[k].ops.weights) p.shared |= is_same_parameter(o, w);
    }
  }
  return parameters;
}

constexpr group group_of(const layer_parameter& p) {
  if (p.shared) return group::shared;
  if (!p.trainable) return group::frozen;
  if (p.experts) return group::experts;
  return p.sum_over_region ? group::over_region : group::own;
}

/// True if several ranks shard the group's weights and all-gather them (FSDP).
constexpr bool is_shared_out(group g, const parallel_dims& d) {
  return (g == group::experts ? expert_weight_shards(d) : weight_shards(d)) > 1;
}

/// The order of tensors in a group: first those sharded over tp, then whole ones, with matrices at both ends.
/// So tensors to which the optimizer applies the same update are adjacent, and its kernels cover long ranges.
constexpr int order_of(const layer_parameter& p) {
  const bool matrix = p.ndim > 1;
  if (p.has_sharded_dim()) return matrix ? 0 : 1;
  return matrix ? 3 : 2;
}

/// The offsets of a layer's parameters in their groups. `size_of`: the size of each, e.g. with the padding of
/// its shards, or one shard.
constexpr group_layout lay_out(const auto& parameters,
                               std::size_t (layer_parameter::*size_of)() const = &layer_parameter::stored) {
  group_layout g;
  g.of_parameter.assign(parameters.size(), {});
  for (int order = 0; order < 4; ++order)
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      if (order_of(parameters[i]) != order) continue;
      const group in = group_of(parameters[i]);
      if (in == group::shared) {
        g.of_parameter[i] = {in, g.shared.size()};
        g.shared.push_back(static_cast<int>(i));
        continue;
      }
      std::size_t& size = g.size[static_cast<int>(in)];
      g.of_parameter[i] = {in, size};
      size += aligned_elements((parameters[i].*size_of)());
    }
  return g;
}

}  // namespace rankc::lowering
