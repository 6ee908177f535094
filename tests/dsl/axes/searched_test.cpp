// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/plan_search/choice.hpp>

namespace searched_test {

using namespace rankc;

namespace {

/// The dims that a search tries, by one loop for each degree of today's table, in this order.
std::vector<parallel_dims> by_loops(const plan_search::question& q, int experts) {
  std::vector<parallel_dims> all;
  for (const int pp : divisors(q.gpus))
    for (const int tp : divisors(q.gpus / pp))
      for (const int cp : divisors(q.gpus / pp / tp))
        for (const int shards : divisors(q.gpus / pp / tp / cp))
          for (const int ep : divisors(experts > 1 ? shards * cp * tp : 1)) {
            if (tp > q.machines.ranks_per_node || (cp > 1 && q.recipe.seq < 16384)) continue;
            if (experts > 1 && experts % ep != 0) continue;
            parallel_dims d{.world = q.gpus, .dp_shard = shards, .cp = cp, .tp = tp, .pp = pp, .ep = ep};
            d.dp_replicate = q.gpus / pp / tp / cp / shards;
            d.ulysses = cp;
            d.sequence_parallel = tp > 1;
            all.push_back(d);
            d.reshard = reshard::after_step;
            if (shards * cp > 1 && pp == 1) all.push_back(d);
          }
  return all;
}

bool is_same(const parallel_dims& a, const parallel_dims& b) {
  for (const named_degree& each : all_degrees)
    if (a.*each.degree != b.*each.degree) return false;
  return a.world == b.world && a.sequence_parallel == b.sequence_parallel && a.reshard == b.reshard;
}

}  // namespace

TEST_CASE("a search tries the degrees of the axes in the order of their kinds") {
  for (const int gpus : {1, 2, 8, 24, 64})
    for (const int seq : {4096, 32768})
      for (const int experts : {1, 8}) {
        plan_search::question q;
        q.gpus = gpus;
        q.machines.ranks_per_node = 8;
        q.recipe.seq = seq;
        const std::vector<parallel_dims> found = plan_search::detail::dims_of(q, experts),
                                         expected = by_loops(q, experts);
        CAPTURE(gpus);
        CAPTURE(seq);
        REQUIRE(found.size() == expected.size());
        for (std::size_t i = 0; i < found.size(); ++i) CHECK(is_same(found[i], expected[i]));
      }
}

}  // namespace searched_test
