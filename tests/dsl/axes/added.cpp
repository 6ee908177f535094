// SPDX-License-Identifier: Apache-2.0
// What all headers make of an axis `xp` that a copy of the table has besides: add_axis.cmake writes it.
#include <rankc/mesh/axes_check.hpp>
#include <rankc/mesh/communicators.hpp>
#include <rankc/rankc.hpp>

using namespace rankc;

// Degrees: multiplied, inferred, named in refusals.
constexpr parallel_dims twelve{.world = 12, .tp = 2, .xp = infer, .pp = 2};
static_assert(resolve(twelve).xp == 3);
static_assert(all_degrees.size() == 9 && all_degrees[5].name == "xp" && written_degrees[4].name == "xp");
constexpr bool says(const parallel_dims& d, std::string_view text) {
  report out;
  if (check_dims(out, d)) detail::check_lowered(out, resolve(d));
  return out.size() == 1 && out[0].text.view() == text;
}
static_assert(says({.world = 8, .tp = 2, .xp = 2},
                   "tp(2) * xp(2) is not world=8: take tp=4, or xp=4, or world=4, or dp_replicate=infer"));
static_assert(says({.xp = 0}, "xp=0; a degree is at least 1, or `infer`"));

// What is not lowered is refused.
static_assert(says(twelve,
                   "xp=3 is not lowered in this version; dp_replicate, dp_shard, cp, tp, ep, etp, pp and "
                   "ulysses are: set xp=1"));

// Views, coordinates, groups; experts are spread over its ranks too.
constexpr layout mesh(resolve(twelve));
static_assert(mesh.ranks() == 12 && mesh.expert().span() == 12 && expert_region(resolve(twelve)) == 6);
static_assert(mesh.at(5)[axis::xp] == 2 && mesh.flat(coord(along<axis::pp>(1), along<axis::xp>(2))) == 8);
static_assert(mesh.groups(axis::xp).members(7) == std::vector{6, 7, 8});
static_assert(mesh.groups(axis::tp_xp).members(0) == std::vector{0, 1, 2, 3, 4, 5});

// Communicators.
constexpr bool has_communicator() {
  for (const planned_communicator& c : plan_communicators(mesh, false, false))
    if (c.serves[0].over == axis::xp)
      return c.serves[0].what == "parts of features" && c.groups.count(12) == 4;
  return false;
}
static_assert(has_communicator());

// Typed values: placements, shards, conversions, and token types.
static_assert(n_axes == 7 && index(axis::xp) == 5 && name(axis::xp) == "xp");
constexpr placement after_gather() {
  trace t;
  type x;
  x.ndim = 2;
  x.shape[0] = {"tokens", 6};
  x.shape[1] = {"features", 12};
  x[axis::xp] = V(1);
  const value y = all_gather(t.add(x), axis::xp, "features");
  return t.said.empty() ? t.of(y)[axis::xp] : P;
}
static_assert(after_gather() == R);
static_assert(detail::token_type({"tokens", 6})[axis::xp] == I);

// A plan on one rank of it is as it was; on two it is refused at the user's static_assert.
constexpr auto made(int xp) {
  return plan{.model = models::gpt2{.layers = 2, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64},
              .dims = parallel_dims{.world = xp, .xp = xp},
              .schedule = schedules::gpipe{.microbatches = 1},
              .recipe = training{.seq = 8, .global_batch = 4},
              .cluster = clusters::cpu};
}
inline constexpr auto on_one = made(1), on_two = made(2);
static_assert(valid<on_one> && !valid<on_two>);
