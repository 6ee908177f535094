// SPDX-License-Identifier: Apache-2.0
// Collectives that send the parts of a sum in bf16. The field and the check accept it for gradients of
// parameters only: not for losses, norms, numbers of labels or choices, or statistics.
#include <doctest/doctest.h>

#include "checker.hpp"
#include "../machine/execution.hpp"
#include "../plans/plans.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "../../../../some_of.hpp"

namespace bf16_sums_test {

using namespace field;
using rankc::codegen::op;
using rankc::codegen::program;

namespace {

bool adds_up(const op& o) {
  using enum rankc::codegen::collective_kind;
  return o.kind == rankc::codegen::op_kind::collective && (o.does == all_reduce || o.does == reduce_scatter);
}

std::set<std::string> names_of_sums(const program& p) {
  std::set<std::string> all;
  for (const auto& rank : p.ranks)
    for (const op& o : rank.ops)
      if (adds_up(o)) all.insert(o.name);
  return all;
}

program sent_in_bf16(program p, const std::string& name) {
  for (auto& rank : p.ranks)
    for (op& o : rank.ops)
      if (adds_up(o) && o.name == name) o.in_bf16 = true;
  return p;
}

/// Whether the field accepts that the sums of a name are sent in bf16. The check must agree.
bool accepts(const subject& s, const execution::model& exact, const std::string& name) {
  const program p = sent_in_bf16(s.program, name);
  const bool is_equal = exact.run(p).equal;
  const std::string refusal = check_terms(p, s.model);
  CHECK_MESSAGE(refusal.empty() == is_equal, s.name, ", ", name, ": ", refusal);
  return is_equal;
}

/// The sums of the plans' programs for CUDA, by whether the field accepts them in bf16.
struct verdicts {
  std::set<std::string> accepted, refused;

  explicit verdicts(const std::vector<rankc::plan_data>& plans) {
    for (const rankc::plan_data& plan : plans) {
      const subject s = subject_of(plan, 0);
      const auto exact = execution::over_field(s.model);
      for (const std::string& name : names_of_sums(s.program))
        (accepts(s, *exact, name) ? accepted : refused).insert(name);
    }
  }
};

bool has(const std::set<std::string>& all, std::string_view part) {
  return std::any_of(all.begin(), all.end(),
                     [&](const std::string& name) { return name.find(part) != name.npos; });
}

}  // namespace

TEST_CASE("gradients may be sent in bf16; losses, norms, numbers of labels and statistics may not") {
  const verdicts masked(rankc::test::some_of(masked_plans())),
      balanced(rankc::test::some_of(balanced_plans()));
  for (const verdicts* of : {&masked, &balanced}) {
    CHECK(has(of->accepted, "gradients"));
    for (const std::string& name : of->accepted) CHECK_MESSAGE(has({name}, "gradients"), name);
    CHECK(has(of->refused, "loss"));
    CHECK(has(of->refused, "norm"));
  }
  CHECK(has(masked.refused, "number of labels"));
  CHECK(has(balanced.refused, "statistics"));
}

TEST_CASE("gradients beside the numbers of choices of a router's bias may not be sent in bf16") {
  const verdicts biased(biased_plans());
  CHECK(has(biased.refused, "gradients"));
  for (const std::string& name : biased.accepted) CHECK_MESSAGE(has({name}, "gradients"), name);
}

}  // namespace bf16_sums_test
