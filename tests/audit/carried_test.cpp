// SPDX-License-Identifier: Apache-2.0
// The communication that the host's fabric carries in a step equals the account in the program, for a
// family's plans.
#include <doctest/doctest.h>

#include "account.hpp"
#include "family.hpp"
#include "run.hpp"

using namespace audit;

TEST_CASE("every rank of a family's plans communicates what its program's table says") {
  int plans = 0;
  std::size_t ranks = 0, transfers = 0;
  for (const registered& program : host_registry) {
    CAPTURE(program.job);
    CAPTURE(program.layout);
    run r(program);
    r.load();
    const auto& t = r.about.train;
    std::vector<rankc::host::transfer> did;
    counted_step(*r.engine, {r.lr, t.weight_decay, t.clip, t.beta1, t.beta2, t.eps, 1}, did);
    for (int rank = 0; rank < r.about.world(); ++rank, ++ranks) {
      CAPTURE(rank);
      const int pp = r.about.ranks[static_cast<std::size_t>(rank)].pp;
      CHECK(difference(carried(r.about, rank, did), as_carried(described(r.about.json, pp))) == "");
    }
    transfers += did.size();
    ++plans;
  }
  CHECK(plans == expected_of(plans, plans_of_family));
  MESSAGE(plans << " plans, " << ranks << " ranks, " << transfers << " transfers");
}

TEST_CASE("a transfer that is missing, or that another rank has too, makes another account") {
  const auto at = std::find_if(host_registry.begin(), host_registry.end(),
                               [](const registered& p) { return p.layout == audited_layout; });
  REQUIRE(at != host_registry.end());
  run r(*at);
  r.load();
  std::vector<rankc::host::transfer> did;
  counted_step(*r.engine, {1e-3, 0, 0, 0.9, 0.95, 1e-8, 1}, did);
  const account right = carried(r.about, 0, did);
  int tried = 0;
  for (std::size_t i = 0; i < did.size(); ++i) {
    if (did[i].rank != 0) continue;
    CAPTURE(did[i].site);
    std::vector<rankc::host::transfer> less = did, more = did;
    less.erase(less.begin() + static_cast<std::ptrdiff_t>(i));
    more.push_back(did[i]);
    CHECK(difference(carried(r.about, 0, less), right) != "");
    CHECK(difference(carried(r.about, 0, more), right) != "");
    ++tried;
  }
  CHECK(tried > 50);
}
