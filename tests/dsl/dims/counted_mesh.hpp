// SPDX-License-Identifier: Apache-2.0
// The mesh of legal dims by counting: nested loops over the ranks give coordinates, and a group is the set of
// ranks whose coordinates agree. No strides are used.
#pragma once
#include <rankc/mesh/layout.hpp>

#include <functional>

#include "partition.hpp"

namespace rankc::test {

inline constexpr int n_mesh_axes = static_cast<int>(std::size(mesh_axis_names));

struct axis_size {
  mesh_axis axis;
  int size;
  bool operator==(const axis_size&) const = default;
};

/// The axes of both views, outermost first.
struct mesh_axes {
  std::vector<axis_size> dense, expert;
};

/// The divisor that makes `whole` together with `part`.
inline int rest_of(int whole, int part) {
  int rest = 1;
  while (rest * part < whole) ++rest;
  return rest;
}

inline mesh_axes axes_of(const parallel_dims& d) {
  using enum mesh_axis;
  const bool independent = d.expert_layout == expert_layout::independent;
  const int copies = d.expert_layout == expert_layout::folded_over_replicas ? 1 : d.dp_replicate;
  mesh_axes m{{{pp, d.pp},
               {dp_replicate, d.dp_replicate},
               {dp_shard, d.dp_shard},
               {ring, rest_of(d.cp, d.ulysses)},
               {ulysses, d.ulysses},
               {tp, d.tp}},
              {{pp, d.pp}, {edp_replicate, copies}}};
  if (independent) {
    m.dense.insert(m.dense.begin() + 3, {ep, d.ep});
    m.expert.insert(
        m.expert.end(),
        {{edp_shard, d.dp_shard}, {ep, d.ep}, {edp_inner, rest_of(d.cp * d.tp, d.etp)}, {etp, d.etp}});
  } else {
    m.expert.insert(m.expert.end(),
                    {{edp_shard, rest_of(d.world, d.pp * copies * d.ep * d.etp)}, {ep, d.ep}, {etp, d.etp}});
  }
  return m;
}

/// The axes and each rank's index along them. The index along an axis that no view has is 0.
struct counted_mesh : mesh_axes {
  std::vector<std::array<int, n_mesh_axes>> ranks;

  int index(int rank, mesh_axis a) const {
    return ranks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(a)];
  }
};

/// One loop inside the other, the innermost axis counting fastest.
inline counted_mesh count(const parallel_dims& d) {
  counted_mesh m{axes_of(d), {}};
  m.ranks.resize(static_cast<std::size_t>(d.world));
  for (const auto* axes : {&m.dense, &m.expert}) {
    std::array<int, n_mesh_axes> at{};
    auto rank = m.ranks.begin();
    const std::function<void(std::size_t)> loop = [&](std::size_t depth) {
      if (depth == axes->size()) {
        for (const axis_size& a : *axes)
          (*rank)[static_cast<std::size_t>(a.axis)] = at[static_cast<std::size_t>(a.axis)];
        ++rank;
        return;
      }
      const auto [axis, size] = (*axes)[depth];
      for (int i = 0; i < size; ++i) {
        at[static_cast<std::size_t>(axis)] = i;
        loop(depth + 1);
      }
    };
    loop(0);
  }
  return m;
}

/// The groups of ranks that agree on all of these axes.
inline partition agreeing(const counted_mesh& m, const std::vector<axis_size>& axes,
                          std::initializer_list<mesh_axis> except) {
  std::vector<int> labels;
  for (int r = 0; r < static_cast<int>(m.ranks.size()); ++r) {
    int label = 0;
    for (const auto& [axis, size] : axes)
      if (std::find(except.begin(), except.end(), axis) == except.end())
        label = label * size + m.index(r, axis);
    labels.push_back(label);
  }
  return of_labels(labels);
}

/// The groups of an axis: ranks that share all other coordinates.
inline partition groups_of(axis a, const parallel_dims& d, const counted_mesh& m) {
  using enum mesh_axis;
  const auto dense = [&](std::initializer_list<mesh_axis> except) { return agreeing(m, m.dense, except); };
  const auto expert = [&](std::initializer_list<mesh_axis> except) { return agreeing(m, m.expert, except); };
  const bool cp_shards = d.cp_weights == cp_weights::shard;
  switch (a) {
    case axis::pp:
      return dense({pp});
    case axis::dp_replicate:
      return dense({dp_replicate});
    case axis::dp_shard:
      return dense({dp_shard});
    case axis::ring:
      return dense({ring});
    case axis::ulysses:
      return dense({ulysses});
    case axis::tp:
      return dense({tp});
    case axis::edp_replicate:
      return expert({edp_replicate});
    case axis::edp_shard:
      return expert({edp_shard});
    case axis::ep:
      return expert({ep});
    case axis::edp_inner:
      return expert({edp_inner});
    case axis::etp:
      return expert({etp});
    case axis::cp:
      return dense({ring, ulysses});
    case axis::dp:
      return dense({dp_replicate, dp_shard});
    case axis::batch:
      return dense({dp_replicate, dp_shard});
    case axis::fsdp:
      return cp_shards ? dense({dp_shard, ring, ulysses}) : dense({dp_shard});
    case axis::replicas:
      return cp_shards ? dense({dp_replicate}) : dense({dp_replicate, ring, ulysses});
    case axis::loss:
      return dense({dp_replicate, dp_shard, ring, ulysses});
    case axis::dp_cp:
      return dense({dp_replicate, dp_shard, ring, ulysses});
    case axis::tp_cp:
      return dense({tp, ring, ulysses});
    case axis::tp_dp:
      return dense({tp, dp_replicate, dp_shard});
    case axis::model:
      return dense({pp, tp});
    case axis::efsdp:
      return expert({edp_shard, edp_inner});
    case axis::expert_replicas:
      return expert({edp_replicate});
    case axis::edp:
      return expert({edp_replicate, edp_shard, edp_inner});
    case axis::ep_etp:
      return expert({ep, etp});
    case axis::embedding: {
      partition ends = dense({pp});
      for (int r = 0; r < d.world; ++r)
        if (const int stage = m.index(r, pp); stage != 0 && stage != d.pp - 1)
          ends[static_cast<std::size_t>(r)] = r;
      return ends;
    }
  }
  return {};
}

}  // namespace rankc::test
