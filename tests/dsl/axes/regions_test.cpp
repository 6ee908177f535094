// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/cost_model/link_time.hpp>
#include <rankc/lowering/parameters.hpp>
#include <rankc/mesh/regions.hpp>

#include <string>

namespace regions_test {

using namespace rankc;

namespace {

/// The axes for which a predicate is true: "pp tp".
std::string axes_that(auto is_one) {
  std::string names;
  for (const axis_row& r : axis_rows)
    if (is_one(r)) names += (names.empty() ? "" : " ") + std::string(r.name);
  return names;
}

constexpr parallel_dims folded{.world = 64,
                               .dp_replicate = 2,
                               .dp_shard = 4,
                               .cp = 4,
                               .tp = 2,
                               .ep = 4,
                               .etp = 2,
                               .ulysses = 2,
                               .sequence_parallel = true};
constexpr parallel_dims independent{
    .world = 64, .dp_shard = 4, .cp = 2, .tp = 2, .ep = 4, .expert_layout = expert_layout::independent};

cost_model::span spans(axis a, const parallel_dims& d, int ranks_per_node) {
  return cost_model::span_of(layout(resolve(d)), a, ranks_per_node);
}
bool is(const cost_model::span& s, int ranks, int in_node) {
  return s.ranks == ranks && s.in_node == in_node;
}

}  // namespace

TEST_CASE("rows answer which axis a region spans and which axes shard what") {
  static_assert(region_axis == axis::tp && expert_region_axis == axis::etp);
  CHECK(axes_that([](const axis_row& r) { return spans_region(r.id); }) == "tp");
  CHECK(axes_that([](const axis_row& r) { return cuts_sequences(r.id); }) == "cp tp");
  CHECK(axes_that([](const axis_row& r) { return shapes_layers(r); }) == "cp ep ulysses tp etp");
  CHECK(axes_that([](const axis_row& r) { return holds_replicas(r); }) == "dp_replicate");
  CHECK(axes_that([](const axis_row& r) { return is_within_layers(r.carries.purpose); }) ==
        "ep ring ulysses tp etp");
}

TEST_CASE("ranks are counted along axes; a degree that is not known counts as 1") {
  CHECK(region_ranks(folded) == 2);
  CHECK(token_shards(folded) == 2);
  CHECK(token_shards({.world = 2, .tp = 2}) == 1);
  CHECK(batch_ranks(folded) == 8);
  CHECK(weight_replicas(folded) == 2);
  const parallel_dims unknown{.world = 8, .dp_replicate = infer, .dp_shard = 2, .tp = infer};
  CHECK(batch_ranks(unknown) == 2);
  CHECK(region_ranks(unknown) == 1);
}

// Expected values: a rank's groups, written out. Ranks of ring * ulysses * tp are neighbours. Independent ep
// ranks lie between these and dp_shard.
TEST_CASE("the span of an axis counts the ranks of a group and those in one node") {
  CHECK(is(spans(axis::tp, folded, 8), 2, 2));
  CHECK(is(spans(axis::ulysses, folded, 8), 2, 2));
  CHECK(is(spans(axis::cp, folded, 8), 4, 4));
  CHECK(is(spans(axis::ring, folded, 4), 2, 1));       // ranks 0 and 4
  CHECK(is(spans(axis::ep, folded, 4), 4, 2));         // ranks 0, 2, 4, 6
  CHECK(is(spans(axis::fsdp, folded, 8), 16, 4));      // ranks 0, 2, ..., 30
  CHECK(is(spans(axis::replicas, folded, 8), 2, 1));   // ranks 0 and 32
  CHECK(is(spans(axis::fsdp, independent, 8), 8, 2));  // ranks 0, 2, 16, 18, 32, 34, 48, 50
  CHECK(is(spans(axis::fsdp, independent, 64), 8, 8));
  CHECK(is(spans(axis::ep, independent, 8), 4, 2));  // ranks 0, 4, 8, 12
}

TEST_CASE("a parameter may be sharded along both of its dims") {
  weight_info w;
  w.holds.ndim = 2;
  w.holds.shape[0] = {"rows", 12};
  w.holds.shape[1] = {"columns", 8};
  w.holds[axis::tp] = V(0);
  w.holds[axis::etp] = V(1);
  const lowering::layer_parameter p =
      lowering::local_parameter(w, resolve({.world = 4, .dp_shard = infer, .tp = 2, .etp = 4}));
  CHECK(p.rows == 6);
  CHECK(p.cols == 2);
  CHECK(p.shards_of_dim[0].ranks == 2);
  CHECK(p.shards_of_dim[1].ranks == 4);
  CHECK(p.shards_of_dim[0].over == axis_set(axis::tp));
  CHECK(p.shards_of_dim[1].over == axis_set(axis::etp));
  w.holds[axis::etp] = V(0);
  const lowering::layer_parameter rows =
      lowering::local_parameter(w, resolve({.world = 4, .dp_shard = infer, .tp = 2, .etp = 2}));
  CHECK(rows.rows == 3);
  CHECK(rows.shards_of_dim[0].ranks == 4);
  CHECK(!rows.shards_of_dim[0].over.has(axis::ep));
  CHECK(rows.shards_of_dim[1].ranks == 1);
}

}  // namespace regions_test
