// SPDX-License-Identifier: Apache-2.0
// The checker over terms compared with the field: both accept lowered programs, and the checker accepts no
// mutant that differs.
#include <doctest/doctest.h>

#include "check_report.hpp"
#include "checker.hpp"

#include "../../../../some_of.hpp"

namespace checker_test {

using namespace field;

namespace {

const report& judged() {
  static const report r = [] {
    std::vector<rankc::plan_data> plans = rankc::test::some_of(tiny_plans(), 1);
    for (rankc::plan_data& p : drawn_plans(3, 14, 4)) plans.push_back(std::move(p));
    return judge_mutants(subjects_of(plans), compare_terms, rankc::test::some_of(600), 2);
  }();
  return r;
}

}  // namespace

TEST_CASE(
    "mutants of programs of tiny and of drawn plans: the checker accepts none that is different, over the "
    "field or in "
    "f64") {
  const report& r = judged();
  check_report(r);
  CHECK(r.total.mutants == rankc::test::some_of(600));
  CHECK(r.total.proven_wrong > (rankc::test::plants_all() ? 333 : 90));
  CHECK(r.total.accepted > rankc::test::some_of(20));
  CHECK(r.total.refused_equal < r.total.mutants / 8);
  // The field stores exp of the target's logit, and kernels the logit. A common factor of both sums of a
  // token shows in f64 alone.
  for (const auto& [kind, texts] : r.f64_only)
    for (const std::string& text : texts)
      CHECK_MESSAGE(text.find("exp_sums\" scale") != std::string::npos,
                    "equal over the field, different in f64: " << text);
  CHECK(r.total.field_only * 100 < r.total.mutants);
}

TEST_CASE("mutants of programs with operands of eight bits: the checker accepts none that is different") {
  int rounds = 0;
  const std::vector<subject> all = subjects_of(narrowed_plans());
  for (const subject& s : all)
    for (const auto& rank : s.program.ranks)
      for (const auto& o : rank.ops) rounds += o.row.find("_fp8") != o.row.npos;
  CHECK(rounds > 300);
  const int mutants = rankc::test::plants_all() ? 300 : 50;
  const report r = judge_mutants(all, compare_terms, mutants, 4);
  check_report(r);
  CHECK(r.total.mutants == mutants);
  CHECK(r.total.proven_wrong * 2 > r.total.mutants);
}

TEST_CASE("mutants of programs with ignored labels: the checker accepts none that is different") {
  const int mutants = rankc::test::plants_all() ? 300 : 50;
  const report r = judge_mutants(subjects_of(masked_plans()), compare_terms, mutants, 5);
  check_report(r);
  CHECK(r.total.mutants == mutants);
  CHECK(r.total.proven_wrong * 2 > r.total.mutants);
}

TEST_CASE("mutants of programs with weights of labels: the checker accepts none that is different") {
  const int mutants = rankc::test::plants_all() ? 300 : 50;
  const report r = judge_mutants(subjects_of(weighted_plans()), compare_terms, mutants, 8);
  check_report(r);
  CHECK(r.total.mutants == mutants);
  CHECK(r.total.proven_wrong * 2 > r.total.mutants);
}

}  // namespace checker_test
