// SPDX-License-Identifier: Apache-2.0
// Handmade programs with sharded parameters, whose last shard may be padded: they end in the model's state,
// over the field and in f64, and the checker accepts no mutant that does not.
#include <doctest/doctest.h>

#include "../../shards_by_hand.hpp"

#include "../../../../some_of.hpp"
#include "checker.hpp"
#include "../machine/execution.hpp"
#include "judge.hpp"

namespace shards_test {

using namespace field;

namespace {

std::vector<subject> sharded() {
  using equivalence_tests::shards;
  std::vector<subject> all;
  for (const shards& s : {shards{}, shards{.of = 4}, shards{.replicas = 2}, shards{.of = 1}})
    all.push_back({"shards", equivalence_tests::sharded_by_hand(s).p, equivalence_tests::model_of_two()});
  return all;
}

}  // namespace

TEST_CASE("shards by hand leave what the model does") {
  for (const subject& s : sharded()) {
    const execution::outcome exact = execution::over_field(s.model)->run(s.program),
                             in_f64 = execution::in_f64(s.model)->run(s.program);
    CHECK_MESSAGE(exact.equal, exact.difference);
    CHECK_MESSAGE(in_f64.equal, in_f64.difference);
  }
}

TEST_CASE("mutants of shards by hand: the checker accepts none that is different") {
  const report r = judge_mutants(sharded(), compare_terms, rankc::test::some_of(2000), 4);
  MESSAGE(to_text(r));
  for (const auto* list : {&r.wrong_programs, &r.failures, &r.false_accepts})
    for (const std::string& text : *list) FAIL_CHECK(text);
  CHECK(r.total.mutants == rankc::test::some_of(2000));
  CHECK(r.total.proven_wrong > rankc::test::some_of(700));
  CHECK(r.total.accepted > rankc::test::some_of(100));
}

}  // namespace shards_test
