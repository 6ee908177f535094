// SPDX-License-Identifier: Apache-2.0
// The arithmetic of parallel dims: which degrees multiply to the world, and the value of the one that is
// inferred.
#pragma once
#include <rankc/mesh/axis_lists.hpp>

namespace rankc {

constexpr bool spans_world(const parallel_dims& d, const named_degree& a) {
  return row(a.along).fills == fills::world ||
         (row(a.along).dense == seen::if_independent && detail::is_independent(d));
}
constexpr bool spans_world(const parallel_dims& d, int parallel_dims::* degree) {
  for (const named_degree& a : all_degrees)
    if (a.degree == degree) return spans_world(d, a);
  return false;
}

/// The product of the known degrees that span the world. It stops growing above `world`, so it cannot
/// overflow.
constexpr long long known_product(const parallel_dims& d) {
  long long product = 1;
  for (const named_degree& a : all_degrees)
    if (spans_world(d, a) && d.*a.degree >= 1 && product <= d.world) product *= d.*a.degree;
  return product;
}

/// RC101, RC102: true if all degrees that span the world are known and multiply to it.
constexpr bool factors_world(const parallel_dims& d) {
  for (const named_degree& a : all_degrees)
    if (spans_world(d, a) && d.*a.degree < 1) return false;
  return known_product(d) == d.world;
}

/// RC107: true if cp divides into rings, or if cp or ulysses is not known.
constexpr bool makes_rings(const parallel_dims& d) {
  return d.cp < 1 || d.ulysses < 1 || d.cp % d.ulysses == 0;
}

/// RC108: true if the expert groups divide their region. The dims must factor the world.
constexpr bool places_experts(const parallel_dims& d) {
  return d.ep >= 1 && d.etp >= 1 && expert_region(d) % (1LL * d.ep * d.etp) == 0;
}

/// True if resolved dims have a layout.
constexpr bool has_layout(const parallel_dims& d) {
  return factors_world(d) && d.ulysses >= 1 && makes_rings(d) && places_experts(d);
}

/// The dims with the inferred degree filled in. It is filled in if it is the only one, the others are at
/// least 1 and an integer fits; otherwise the dims are unchanged. A degree that does not span the world gets
/// its largest value: ep and etp fill their region, ulysses fills cp.
constexpr parallel_dims resolve(parallel_dims d) {
  const named_degree* unknown = nullptr;
  for (const named_degree& a : all_degrees) {
    if (d.*a.degree >= 1) continue;
    if (d.*a.degree != infer || unknown) return d;
    unknown = &a;
  }
  if (!unknown || d.world < 1) return d;
  long long whole = d.world, known = known_product(d);
  if (!spans_world(d, *unknown)) {
    if (known_product(d) != d.world) return d;
    const fills what = row(unknown->along).fills;
    whole = what == fills::cp ? d.cp : expert_region(d);
    known = 1;
    for (const named_degree& a : all_degrees)
      if (&a != unknown && row(a.along).fills == what) known *= d.*a.degree;
  }
  if (whole % known == 0) d.*unknown->degree = static_cast<int>(whole / known);
  return d;
}

}  // namespace rankc
