// SPDX-License-Identifier: Apache-2.0
// All headers with a copy of the table of axes that has two more axes: `xp` shards features and is not
// lowered; `np` shards sequences and is lowered for tokens. add_axis.cmake writes the copy.
#include <rankc/mesh/axes_check.hpp>
#include <rankc/mesh/communicators.hpp>
#include <rankc/peak_bytes.hpp>
#include <rankc/rankc.hpp>
#include <rankc/step_time.hpp>

using namespace rankc;

// Degrees: multiplied, inferred, named in refusals.
constexpr parallel_dims twelve{.world = 12, .tp = 2, .xp = infer, .pp = 2};
static_assert(resolve(twelve).xp == 3);
static_assert(all_degrees.size() == 10 && all_degrees[6].name == "xp" && written_degrees[5].name == "xp");
constexpr bool says(const parallel_dims& d, std::string_view text) {
  report out;
  if (check_dims(out, d)) detail::check_lowered(out, resolve(d));
  return out.size() == 1 && out[0].text.view() == text;
}
static_assert(says({.world = 8, .tp = 2, .xp = 2},
                   "tp(2) * xp(2) is not world=8: take tp=4, or xp=4, or world=4, or dp_replicate=infer"));
static_assert(says({.xp = 0}, "xp=0; a degree is at least 1, or `infer`"));

// An axis that is not lowered is refused.
static_assert(says(twelve,
                   "xp=3 is not lowered in this version; dp_replicate, dp_shard, np, cp, tp, ep, etp, pp "
                   "and ulysses are: set xp=1"));

// Views, coordinates, groups; experts are spread over its ranks, too.
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
static_assert(n_axes == 8 && index(axis::xp) == 6 && name(axis::xp) == "xp");
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

// With one rank of an axis, a plan is unchanged. Two ranks of xp are refused at the user's static_assert.
constexpr auto made(parallel_dims dims) {
  return plan{.model = models::gpt2{.layers = 2, .hidden = 32, .heads = 4, .ffn = 64, .vocab = 64},
              .dims = dims,
              .schedule = schedules::gpipe{.microbatches = 1},
              .recipe = training{.seq = 8, .global_batch = 4},
              .cluster = clusters::h200<1>};
}
inline constexpr auto on_one = made({.world = 1}), on_two = made({.world = 2, .xp = 2});
static_assert(valid<on_one> && !valid<on_two>);

// Ranks of np have sequences of their own and hold replicas of the weights, as those of dp_replicate do.
constexpr parallel_dims four{.world = 4, .np = 2, .tp = 2, .sequence_parallel = true},
    as_replicas{.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = true};
static_assert(batch_ranks(four) == 2 && weight_replicas(four) == 2 && weight_shards(four) == 1);
static_assert(layout(four).groups(axis::replicas).members(3) == std::vector{1, 3});
static_assert(layout(four).groups(axis::loss) == layout(as_replicas).groups(axis::loss));
static_assert(detail::token_type({"tokens", 6})[axis::np] == V(0));
inline constexpr auto replicated = made(four), alike = made(as_replicas);
static_assert(valid<replicated>);
static_assert(peak_bytes<replicated> == peak_bytes<alike>);
static_assert(comm_bytes<replicated> == comm_bytes<alike>);
static_assert(step_time<replicated> == step_time<alike>);
constexpr bool sums_gradients_over_np() {
  const plan_data p = make_plan_data(replicated);
  const auto weights = lowering::local_parameters(p.kinds, 1, p.dims);
  for (const lowering::layer_parameter& w : weights)
    if (!w.sum_over_dp) return false;
  return !weights.empty();
}
static_assert(sums_gradients_over_np());

// Spreading experts over ranks of np is refused if replicas hold the same ones.
static_assert(says({.world = 8, .dp_replicate = 2, .np = 2, .cp = 2, .ep = 2},
                   "np=2 with ep=2 and dp_replicate=2 is not lowered in this version, for ranks of np have "
                   "other experts and replicas the same: set np=1, or expert_layout=folded_over_replicas"));
