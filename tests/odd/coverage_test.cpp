// SPDX-License-Identifier: Apache-2.0
// The odd plans together cover every way to split a model, every pair of ways, and larger combinations, by
// their dims, schedules and recipes.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "techniques.hpp"

namespace coverage_test {

namespace {

using odd::techniques;

const char* reshard_of(const rankc::parallel_dims& d) {
  if (reshards_after_layer(d)) return "after_layer";
  return d.reshard == rankc::reshard::after_stage ? "after_stage" : "after_step";
}

/// The techniques that a plan uses.
techniques techniques_of(const rankc::plan_data& p) {
  const rankc::parallel_dims& d = p.dims;
  techniques all;
  if (d.dp_replicate > 1) all.insert("dp_replicate");
  if (d.dp_shard > 1) all.insert(reshard_of(d));
  if (d.cp > 1) all.insert("cp");
  if (d.tp > 1) all.insert(d.sequence_parallel ? "sequence_parallel" : "tp");
  if (d.pp > 1) all.emplace(p.schedule);
  else if (p.actions.microbatches > 1) all.insert("microbatches");
  if (p.recipe.recompute.any()) all.insert("recompute");
  return all;
}

}  // namespace

TEST_CASE("the odd plans have every technique alone, and every two of them") {
  std::map<techniques, int> plans;
  for (const split_plan& p : odd::plans())
    if (p.layout != "one" && p.layout != "three") ++plans[techniques_of(p.plan)];
  techniques names(std::begin(odd::other_names), std::end(odd::other_names));
  names.insert(std::begin(odd::order_names), std::end(odd::order_names));
  int pairs = 0, with_plans = 0;
  for (const std::string& a : names) {
    CAPTURE(a);
    CHECK(plans[{a}] > 0);
    for (const std::string& b : names) {
      if (a > b || !odd::go_together(a, b)) continue;
      CAPTURE(b);
      CHECK(plans[{a, b}] > 0);
      ++pairs;
      with_plans += plans[{a, b}];
    }
  }
  int three = 0;
  for (const auto& [of, n] : plans)
    if (of.size() >= 3 && std::any_of(of.begin(), of.end(), odd::is_order)) three += n;
  CHECK(three >= 10);
  MESSAGE(pairs << " pairs by " << with_plans << " plans; " << three
                << " plans of a pipeline with two techniques or more");
}

}  // namespace coverage_test
