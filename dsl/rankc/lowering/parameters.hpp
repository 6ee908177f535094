// SPDX-License-Identifier: Apache-2.0
// A layer's parameters on one rank, and where each lies among them.
#pragma once
#include <rankc/lowering/local_shape.hpp>
#include <rankc/trace/trace.hpp>

#include <cstddef>
#include <string_view>
#include <vector>

namespace rankc::lowering {

/// The axes of more than one rank that shard the features of a dim, and how many ranks these have.
struct dim_shards {
  axis_set over{};
  int ranks = 1;
};

/// A parameter of a layer, sized for one rank.
struct layer_parameter {
  parameter_name name;
  int rows = 1, cols = 1, ndim = 1;  // as layers read it
  int shards = 1;                    // ranks that share it
  int shard_rows = 1,
      stored_rows = 1;  // that each of the ranks that share them keeps; of all of them, the last ones padding
  dim_shards shards_of_dim[2]{};     // of rows and columns
  bool experts = false;              // rows: those of the experts that a rank of ep has
  bool differs_over_region = false;  // each rank of a region has another part
  bool differs_over_replicas =
      false;  // ranks that hold the same dense weights have other experts, or another part of these
  bool differs_over_ep = false;  // so do ranks of ep
  initial start = initial::zeros;
  double std = 0;
  bool sum_over_region = false;  // its gradient is a part of a sum there, by the typed trace
  bool sum_over_dp = false;
  bool shared = false;      // with another layer: one tensor
  bool trainable = true;    // else no gradient of it is made
  load_balance balances{};  // a bias of experts' scores
  constexpr bool has_sharded_dim() const { return shards_of_dim[0].ranks > 1 || shards_of_dim[1].ranks > 1; }
  constexpr std::size_t elements() const { return static_cast<std::size_t>(rows) * cols; }
  constexpr std::size_t shard() const { return static_cast<std::size_t>(shard_rows) * cols; }
  constexpr bool has_padding() const { return stored_rows != rows; }
  constexpr std::size_t stored() const { return static_cast<std::size_t>(stored_rows) * cols; }
};

/// Parameters of a layer by what happens to their gradients. All groups but the last are contiguous.
///   own          the layer's own
///   over_region  also summed over the ranks of a tensor-parallel region
///   experts      those of the rank's own experts
///   frozen       not trained
///   shared       those that another layer shares
enum class group : unsigned char { own, over_region, experts, frozen, shared };
inline constexpr int n_groups = 4;  // of one piece

/// Where each parameter of a layer lies in its group. Units: elements.
struct group_layout {
  struct place {
    group in = group::own;
    std::size_t offset = 0;  // shared: which of the layer's shared parameters it is
  };
  std::vector<place> of_parameter;
  std::size_t size[n_groups]{};
  std::vector<int> shared;  // parameters
};

/// Tensors start at multiples of this many elements: aligned vectors in every type.
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

/// The parameters of one of a model's kinds of layers.
constexpr std::vector<layer_parameter> local_parameters(const auto& kinds, std::size_t kind,
                                                        const parallel_dims& d) {
  std::vector<layer_parameter> parameters;
  const auto& layer = kinds[kind];
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

/// Whether ranks share out what layers read of a group, and gather it.
constexpr bool is_shared_out(group g, const parallel_dims& d) {
  return (g == group::experts ? expert_weight_shards(d) : weight_shards(d)) > 1;
}

/// Within a group, tensors of the same treatment stand side by side: sharded before whole, and decayed on the
/// outside, so that the optimizer's calls cover long ranges.
constexpr int order_of(const layer_parameter& p) {
  const bool matrix = p.ndim > 1;
  if (p.has_sharded_dim()) return matrix ? 0 : 1;
  return matrix ? 3 : 2;
}

/// Where a layer's parameters lie in their groups, of the size that each has there: what layers read, with
/// the padding of its shards, or what a rank keeps.
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
