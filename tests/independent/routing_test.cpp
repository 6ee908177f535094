// SPDX-License-Identifier: Apache-2.0
// Ranks of ep with the same tokens make the same choices: loads, balances and dropped picks are counted once,
// and biases move as on one rank.
#include <doctest/doctest.h>

#include <rankc/trainer/router_metrics.hpp>

#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "run.hpp"

namespace routing_test {

using rankc::runtime::region;

TEST_CASE("all layouts choose and drop the same picks, step by step") {
  std::map<int, rankc::runtime::router_metrics> of_one;
  int steps = 0;
  for (const registered& program : host_registry) {
    if (program.job != "limited") continue;
    CAPTURE(program.layout);
    run r(program, "arith", 1e-3);
    for (int n = 0; n < 5; ++n, ++steps) {
      CAPTURE(n);
      r.step();
      const auto routers = rankc::runtime::read_routers(*r.engine);
      REQUIRE(routers.has_value());
      const auto [one, is_first] = of_one.try_emplace(n, *routers);
      CHECK(routers->load == one->second.load);
      CHECK(routers->dropped == one->second.dropped);
      CHECK(std::abs(routers->balance - one->second.balance) <= 1e-12 * one->second.balance);
      CHECK(std::accumulate(routers->dropped.begin(), routers->dropped.end(), std::int64_t{0}) > 10);
      if (is_first) CHECK(program.layout == "one");
    }
  }
  CHECK(steps == expected_of(steps, 7 * 5));
}

TEST_CASE("biases of all layouts move as on one rank") {
  std::map<std::string, std::vector<double>> of_one;
  int compared = 0, moved = 0;
  for (const registered& program : host_registry) {
    if (program.job != "biased") continue;
    CAPTURE(program.layout);
    run r(program, "arith", 1e-3);
    for (int n = 0; n < 5; ++n) r.step();
    for (const auto& [name, values] : r.tensors(region::weights)) {
      if (!name.ends_with("router.bias")) continue;
      CAPTURE(name);
      const auto [one, is_first] = of_one.try_emplace(name, values);
      CHECK(values == one->second);
      for (const double bias : values) moved += bias != 0;
      compared += !is_first;
    }
  }
  CHECK(compared == expected_of(compared, 2 * 6));
  CHECK(moved >= 2 * compared);
}

}  // namespace routing_test
