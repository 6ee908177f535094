// SPDX-License-Identifier: Apache-2.0
// The checker over terms beside the field: both accept what is lowered, and the checker accepts no mutant that differs.
#include <doctest/doctest.h>

#include "checker.hpp"
#include "judge.hpp"

#include <algorithm>
#include <iterator>

using namespace field;

namespace {

const report& judged() {
  static const report r = [] {
    std::vector<rankc::plan_data> plans = tiny_plans();
    for (rankc::plan_data& p : drawn_plans(3, 14, 4)) plans.push_back(std::move(p));
    return judge_mutants(subjects_of(plans), check_terms, 900, 2);
  }();
  return r;
}

/// Whether a mutant is of what a collective of a layer is given: "block: all_gather of n2".
bool is_of_collective(const std::string& mutant) {
  constexpr const char* names[]{"all_reduce of ", "all_reduce_max of ", "all_gather of ", "reduce_scatter of "};
  return std::any_of(std::begin(names), std::end(names),
                     [&](const char* name) { return mutant.find(name) != std::string::npos; });
}

void expect_none_accepted(bool of_collectives) {
  for (const std::string& text : judged().false_accepts)
    if (is_of_collective(text) == of_collectives) FAIL_CHECK("accepted and different: " << text);
}

}  // namespace

TEST_CASE("mutants of programs of tiny and of drawn plans: the checker accepts none that is different over the field") {
  const report& r = judged();
  MESSAGE(to_text(r));
  for (const std::string& text : r.wrong_programs) FAIL_CHECK("no mutant, and refused or different: " << text);
  for (const std::string& text : r.failures) FAIL_CHECK("the checker failed: " << text);
  expect_none_accepted(false);
  CHECK(r.total.mutants == 900);
  CHECK(r.total.proven_wrong > 500);
  CHECK(r.total.accepted > 50);
  CHECK(r.total.refused_equal < r.total.mutants / 8);
}

// The checker takes what a collective works on from the accesses, not from the views: an offset, a stride or a shape of
// these that is another is not seen. When it is, this test says so.
TEST_CASE("mutants of what a collective is given: the checker accepts none that is different" *
          doctest::should_fail()) {
  expect_none_accepted(true);
}
