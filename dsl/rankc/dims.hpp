// SPDX-License-Identifier: Apache-2.0
// Parallel dims: how many ranks share the work along each axis, as a user declares them.
#pragma once
#include <rankc/text.hpp>

namespace rankc {

/// Stands for the one degree that the others determine.
inline constexpr int infer = -1;

/// Where the ranks of expert parallelism come from.
///   folded                the ranks of one replica of the dense layers: ep * etp divides dp_shard * cp * tp
///   folded_over_replicas  those of all replicas: ep * etp divides dp_replicate * dp_shard * cp * tp
///   independent           an axis of the world of its own; the dense layers are computed ep times, on the same data
enum class expert_layout : unsigned char { folded, folded_over_replicas, independent };
inline constexpr std::string_view expert_layout_names[]{"folded", "folded_over_replicas", "independent"};

/// Whether the ranks of a cp group shard the weights among them or each hold them.
enum class cp_weights : unsigned char { shard, replicate };
inline constexpr std::string_view cp_weights_names[]{"shard", "replicate"};

/// The degree of each axis. world = pp * dp_replicate * dp_shard * cp * tp, times ep where experts are independent;
/// cp = ring * ulysses.
/// Errors: RC101 to RC109, from `check_dims`.
struct parallel_dims {
  int world = 1;
  int dp_replicate = 1, dp_shard = 1, cp = 1, tp = 1, pp = 1, ep = 1, etp = 1, ulysses = 1;
  bool sequence_parallel = false;  // between tp regions, shard the tokens instead of repeating them
  rankc::expert_layout expert_layout = rankc::expert_layout::folded;
  rankc::cp_weights cp_weights = rankc::cp_weights::shard;
};

struct named_degree {
  std::string_view name;
  int parallel_dims::*degree;
};

/// All degrees, those whose product is the world first, outermost first; ep is one of these where experts are independent.
inline constexpr named_degree all_degrees[]{{"pp", &parallel_dims::pp},
                                            {"dp_replicate", &parallel_dims::dp_replicate},
                                            {"dp_shard", &parallel_dims::dp_shard},
                                            {"cp", &parallel_dims::cp},
                                            {"tp", &parallel_dims::tp},
                                            {"ep", &parallel_dims::ep},
                                            {"etp", &parallel_dims::etp},
                                            {"ulysses", &parallel_dims::ulysses}};

constexpr bool spans_world(const parallel_dims& d, int parallel_dims::*degree) {
  if (degree == &parallel_dims::ep) return d.expert_layout == expert_layout::independent;
  return degree != &parallel_dims::etp && degree != &parallel_dims::ulysses;
}

/// The product of the degrees that are known and span the world. It stops growing above `world`, so it cannot overflow.
constexpr long long known_product(const parallel_dims& d) {
  long long product = 1;
  for (const auto& a : all_degrees)
    if (spans_world(d, a.degree) && d.*a.degree >= 1 && product <= d.world) product *= d.*a.degree;
  return product;
}

/// The ranks that experts are spread over: ep * etp must divide their number.
constexpr long long expert_region(const parallel_dims& d) {
  const long long lane = static_cast<long long>(d.cp) * d.tp;
  switch (d.expert_layout) {
    case expert_layout::folded: return lane * d.dp_shard;
    case expert_layout::folded_over_replicas: return lane * d.dp_shard * d.dp_replicate;
    case expert_layout::independent: return lane * d.ep;
  }
  return lane;
}

/// RC101, RC102: the degrees that span the world are known and multiply to it.
constexpr bool factors_world(const parallel_dims& d) {
  for (const auto& a : all_degrees)
    if (spans_world(d, a.degree) && d.*a.degree < 1) return false;
  return known_product(d) == d.world;
}

/// RC107: cp divides into rings, as far as both are known.
constexpr bool makes_rings(const parallel_dims& d) { return d.cp < 1 || d.ulysses < 1 || d.cp % d.ulysses == 0; }

/// RC108: the expert groups divide their region, of dims that factor the world.
constexpr bool places_experts(const parallel_dims& d) {
  return d.ep >= 1 && d.etp >= 1 && expert_region(d) % (1LL * d.ep * d.etp) == 0;
}

/// Whether resolved dims have a layout.
constexpr bool has_layout(const parallel_dims& d) {
  return factors_world(d) && d.ulysses >= 1 && makes_rings(d) && places_experts(d);
}

/// The same dims with the inferred degree filled in, where it is the only one, the others are at least 1 and a whole
/// number fits; else unchanged. A degree that does not span the world takes all that it can: ep and etp their region,
/// ulysses the whole of cp.
constexpr parallel_dims resolve(parallel_dims d) {
  const named_degree* unknown = nullptr;
  for (const auto& a : all_degrees) {
    if (d.*a.degree >= 1) continue;
    if (d.*a.degree != infer || unknown) return d;
    unknown = &a;
  }
  if (!unknown || d.world < 1) return d;
  long long whole = d.world, known = known_product(d);
  if (!spans_world(d, unknown->degree)) {
    if (known_product(d) != d.world) return d;
    const bool of_cp = unknown->degree == &parallel_dims::ulysses;
    whole = of_cp ? d.cp : expert_region(d);
    known = of_cp ? 1 : unknown->degree == &parallel_dims::ep ? d.etp : d.ep;
  }
  if (whole % known == 0) d.*unknown->degree = static_cast<int>(whole / known);
  return d;
}

}  // namespace rankc
