// SPDX-License-Identifier: Apache-2.0
// RC101 to RC109: what is wrong with dims alone.
#pragma once
#include <rankc/diagnostic.hpp>
#include <rankc/mesh/layout.hpp>

namespace rankc {

namespace detail {

/// "pp(2) * tp(4)": the known degrees that span the world.
constexpr sentence factors(const parallel_dims& d) {
  sentence s;
  for (const auto& a : all_degrees)
    if (spans_world(d, a.degree) && d.*a.degree > 1) s << (s.empty() ? "" : " * ") << a.name << "(" << d.*a.degree << ")";
  if (s.empty()) s << "1";
  return s;
}

/// RC104, RC105: degrees are numbers, all but one at most. Says whether they are.
constexpr bool check_degrees(report& out, const parallel_dims& d) {
  int inferred = 0;
  bool ok = d.world >= 1;
  if (d.world < 1) refuse(out, 104) << "world=" << d.world << " ranks; the world has at least 1";
  for (const auto& a : all_degrees) {
    inferred += d.*a.degree == infer;
    if (d.*a.degree >= 1 || d.*a.degree == infer) continue;
    refuse(out, 104) << a.name << "=" << d.*a.degree << "; a degree is at least 1, or `infer`";
    ok = false;
  }
  if (inferred > 1) refuse(out, 105) << inferred << " degrees are `infer`; the world size determines one at most";
  return ok && inferred <= 1;
}

/// RC101, RC102: the degrees that span the world multiply to it. Says whether they do.
constexpr bool check_world(report& out, const parallel_dims& given, const parallel_dims& d) {
  for (const auto& a : all_degrees)
    if (given.*a.degree == infer && spans_world(given, a.degree)) {
      if (d.*a.degree != infer) return true;
      refuse(out, 102) << "world=" << d.world << " is not a multiple of " << factors(d).view() << ", so that " << a.name
                       << " cannot be inferred; the product of the others must be a divisor of the world: ";
      list_divisors(out.back().text, d.world);
      return false;
    }
  const long long product = known_product(given);
  if (product == given.world) return true;
  sentence& s = refuse(out, 101) << factors(given).view() << " is not world=" << given.world << "; ";
  if (product < given.world && given.world % product == 0)
    s << "multiply one degree by " << given.world / product << ", or write dp_replicate=infer";
  else s << "the product of the degrees must be the world size";
  return false;
}

}  // namespace detail

/// Append what is wrong with the dims alone. Errors: RC101 to RC109. Says whether they have a layout: `layout(resolve(d))`.
constexpr bool check_dims(report& out, const parallel_dims& given) {
  if (!detail::check_degrees(out, given)) return false;
  const parallel_dims d = resolve(given);
  bool ok = detail::check_world(out, given, d);
  if (d.sequence_parallel && d.tp == 1)
    refuse(out, 106) << "sequence_parallel=true with tp=1 shards nothing; set tp > 1 or leave it out";
  if (d.cp != infer && d.ulysses != infer && d.cp % d.ulysses) {
    list_divisors(refuse(out, 107) << "cp=" << d.cp << " does not divide into rings of ulysses=" << d.ulysses
                                   << " (cp = ring * ulysses); ulysses can be ", d.cp);
    ok = false;
  }
  if (!ok) return false;
  if (const long long region = expert_region(d), each = 1LL * d.ep * d.etp; d.ep == infer || d.etp == infer || region % each) {
    refuse(out, 108) << "ep * etp = " << each << " does not divide the ranks that experts are spread over, " << region;
    return false;
  }
  // Axes that both views have must have the same groups; by construction they do.
  const layout l(d);
  if (const axis_extent* a = first_unequal_axis(l.dense(), l.expert())) {
    refuse(out, 109) << "axis " << name(a->axis) << " has other groups in the expert view than in the dense view";
    return false;
  }
  return true;
}

}  // namespace rankc
