// SPDX-License-Identifier: Apache-2.0
// What the degrees of parallel dims say together: which multiply to the world, and what the one that is left
// out is.
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

/// The product of the degrees that are known and span the world. It stops growing above `world`, so it cannot
/// overflow.
constexpr long long known_product(const parallel_dims& d) {
  long long product = 1;
  for (const named_degree& a : all_degrees)
    if (spans_world(d, a) && d.*a.degree >= 1 && product <= d.world) product *= d.*a.degree;
  return product;
}

/// RC101, RC102: the degrees that span the world are known and multiply to it.
constexpr bool factors_world(const parallel_dims& d) {
  for (const named_degree& a : all_degrees)
    if (spans_world(d, a) && d.*a.degree < 1) return false;
  return known_product(d) == d.world;
}

/// RC107: cp divides into rings, as far as both are known.
constexpr bool makes_rings(const parallel_dims& d) {
  return d.cp < 1 || d.ulysses < 1 || d.cp % d.ulysses == 0;
}

/// RC108: the expert groups divide their region, of dims that factor the world.
constexpr bool places_experts(const parallel_dims& d) {
  return d.ep >= 1 && d.etp >= 1 && expert_region(d) % (1LL * d.ep * d.etp) == 0;
}

/// Whether resolved dims have a layout.
constexpr bool has_layout(const parallel_dims& d) {
  return factors_world(d) && d.ulysses >= 1 && makes_rings(d) && places_experts(d);
}

/// The same dims with the inferred degree filled in, where it is the only one, the others are at least 1 and
/// a whole number fits; else unchanged. A degree that does not span the world takes all that it can: ep and
/// etp their region, ulysses the whole of cp.
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
