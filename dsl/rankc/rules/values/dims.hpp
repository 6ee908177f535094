// SPDX-License-Identifier: Apache-2.0
// RC101 to RC109, RC111, RC113, RC114: the faults that dims have by themselves, and dims that are legal but
// costly.
#pragma once
#include <rankc/mesh/layout.hpp>
#include <rankc/rules/values/setting.hpp>

namespace rankc {

namespace detail {

/// "pp(2) * tp(4)": the known degrees above 1 that span the world.
constexpr sentence factors(const parallel_dims& d) {
  sentence s;
  for (const auto& a : all_degrees)
    if (spans_world(d, a) && d.*a.degree > 1)
      s << (s.empty() ? "" : " * ") << a.name << "(" << d.*a.degree << ")";
  return s;
}

/// "dp_shard * cp * tp": the axes of the ranks of one replica, over which experts are folded.
constexpr sentence factors_of_replica() {
  sentence s;
  for (const named_degree& a : all_degrees)
    if (row(a.along).fills == fills::world && a.along >= axis::dp_shard)
      s << (s.empty() ? "" : " * ") << a.name;
  return s;
}

/// The degree that spans the world and must still be inferred; null if there is none.
constexpr const named_degree* unknown_of_world(const parallel_dims& d) {
  for (const auto& a : all_degrees)
    if (d.*a.degree == infer && spans_world(d, a)) return &a;
  return nullptr;
}

/// Offers a change of one written degree above 1, a world that the degrees multiply to, and an inferred
/// degree.
constexpr void offer_world(search& a) {
  const parallel_dims& given = a.written().given;
  for (const auto& degree : all_degrees)
    if (spans_world(given, degree) && given.*degree.degree > 1) a.vary(degree.degree, true);
  parallel_dims whole = given;
  whole.world = std::numeric_limits<int>::max();
  const long long product = known_product(whole), below = given.world / product * product;
  nearest_values worlds;
  for (const long long world : {below, below + product, product}) {
    setting x = a.written();
    if (world < 1 || world > whole.world || worlds.count == 2 || (worlds.count && worlds.value[0] == world))
      continue;
    x.given.world = static_cast<int>(world);
    x.dims = resolve(x.given);
    if (a.mends(x)) worlds.add(x.given.world);
  }
  a.found().add_degree(given, &parallel_dims::world, worlds);
  setting inferred = a.written();
  if (unknown_of_world(given)) return;
  inferred.given.*absorber(given) = infer;
  inferred.dims = resolve(inferred.given);
  if (a.mends(inferred)) a.found().next() << name_of(absorber(given)) << "=infer";
}

/// If the degrees do not multiply to the world, the ranks of experts are not checked.
inline constexpr rule dims_rules[]{
    // RC101
    {101, [](const setting& s) { return unknown_of_world(s.given) || factors_world(s.dims); },
     [](sentence& t, const setting& s) {
       const sentence product = factors(s.given);
       if (product.empty()) t << "the degrees multiply to 1 (all are 1), not to world=" << s.given.world;
       else t << product.view() << " is not world=" << s.given.world;
     },
     offer_world},
    // RC102
    {102, [](const setting& s) { return !unknown_of_world(s.dims); },
     [](sentence& t, const setting& s) {
       t << "world=" << s.given.world << " is not a multiple of " << factors(s.given).view() << ", so that "
         << unknown_of_world(s.dims)->name << " cannot be inferred";
     },
     offer_world},
    // RC106
    {106, [](const setting& s) { return !s.dims.sequence_parallel || ranks_along(s.dims, region_axis) != 1; },
     [](sentence& t, const setting&) {
       t << "sequence_parallel=true has no effect with " << name(region_axis) << "=1";
     },
     [](search& a) {
       a.vary(row(region_axis).degree);
       a.found().next() << "sequence_parallel=false";
     }},
    // RC107
    {107, [](const setting& s) { return makes_rings(s.dims); },
     [](sentence& t, const setting& s) {
       t << "cp=" << s.dims.cp << " does not divide into rings of ulysses=" << s.dims.ulysses
         << " (cp = ring * ulysses)";
     },
     [](search& a) { a.vary(&parallel_dims::ulysses).vary(&parallel_dims::cp); }},
    // RC108
    {108, [](const setting& s) { return !factors_world(s.dims) || places_experts(s.dims); },
     [](sentence& t, const setting& s) {
       const parallel_dims& d = s.dims;
       if (d.ep == infer || d.etp == infer)
         t << (d.ep == infer ? "etp=" : "ep=") << (d.ep == infer ? d.etp : d.ep);
       else t << "ep * etp = " << 1LL * d.ep * d.etp;
       t << " does not divide the ranks that experts are spread over, " << expert_region(d);
       if (d.expert_layout == expert_layout::folded) t << " (" << factors_of_replica().view() << ")";
     },
     [](search& a) {
       a.vary(&parallel_dims::ep).vary(&parallel_dims::etp).vary(&parallel_dims::dp_shard);
       setting x = a.written();
       x.given.expert_layout = expert_layout::folded_over_replicas;
       x.dims = resolve(x.given);
       if (x.dims.dp_replicate > 1 && a.mends(x)) a.found().next() << "expert_layout=folded_over_replicas";
     }},
    // RC111
    {111, [](const setting& s) { return !has_layout(s.dims) || s.dims.etp == 1; },
     [](sentence& t, const setting& s) {
       t << "etp=" << s.dims.etp
         << (s.dims.ep == 1 ? " with ep=1 splits every expert, and is unused without experts"
                            : " splits every expert")
         << ": smaller products and an all-reduce for each; ep * etp = " << 1LL * s.dims.ep * s.dims.etp
         << " ranks hold whole experts with ep=" << 1LL * s.dims.ep * s.dims.etp << " and etp=1";
     },
     no_offers, true},
    // RC113
    {113,
     [](const setting& s) {
       return !has_layout(s.dims) || s.dims.expert_layout != expert_layout::independent || s.dims.ep == 1;
     },
     [](sentence& t, const setting& s) {
       t << "dense layers are computed ep=" << s.dims.ep
         << " times on the same data; folded equivalent: dp_shard=" << 1LL * s.dims.dp_shard * s.dims.ep
         << " ep=" << s.dims.ep << " expert_layout=folded";
     },
     no_offers, true},
};

/// RC104, RC105, RC114: every degree is at least 1, and at most one is inferred. Returns true if so.
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
  if (d.prefetch < 0) {
    refuse(out, 114) << "prefetch=" << d.prefetch
                     << "; weights are gathered for 0 or more layers ahead: 1 is usual, 0 takes least memory";
    ok = false;
  }
  if (inferred > 1)
    refuse(out, 105) << inferred << " degrees are `infer`; the world size determines one at most";
  return ok && inferred <= 1;
}

}  // namespace detail

/// RC109: an axis of both views has the same groups in both. Returns true if all have.
constexpr bool check_shared_axes(report& out, const view& dense, const view& expert) {
  const axis_extent* a = first_unequal_axis(dense, expert);
  if (!a) return true;
  const axis_extent* b = expert.find(a->axis);
  const int dense_size = a->size, expert_size = b->size;
  refuse(out, 109) << "axis " << name(a->axis) << " of the dense view has size " << dense_size
                   << " and stride " << a->stride << ", and of the expert view " << expert_size << " and "
                   << b->stride << "; an axis of both views must have the same groups";
  return false;
}

/// Appends the faults that dims have by themselves. Returns true if they have a layout:
/// `layout(resolve(given))`.
/// Errors: RC101 to RC109, RC114; the warnings RC111, RC113.
constexpr bool check_dims(report& out, const parallel_dims& given) {
  if (!detail::check_degrees(out, given)) return false;
  const setting s{.given = given};
  check(out, s, detail::dims_rules);
  if (!has_layout(s.dims)) return false;
  const layout l(s.dims);
  return check_shared_axes(out, l.dense(), l.expert());
}

}  // namespace rankc
