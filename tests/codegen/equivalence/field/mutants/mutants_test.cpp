// SPDX-License-Identifier: Apache-2.0
// Mutants of lowered programs: the field and f64 detect faults of every kind, and accept mutants without
// effect.
#include <doctest/doctest.h>

#include <algorithm>

#include "../../../../some_of.hpp"
#include "judge.hpp"

namespace mutants_test {

using namespace field;

namespace {

std::string accept(const rankc::codegen::program&, const rankc::codegen::verdict&,
                   const rankc::codegen::specification&) {
  return {};
}

}  // namespace

TEST_CASE(
    "mutants of programs of tiny plans: faults of every kind make a difference, most that the proof of order "
    "does not "
    "see") {
  using rankc::test::some_of;
  const int mutants = rankc::test::plants_all() ? 2800 : 500;
  const report r = judge_mutants(subjects_of(some_of(tiny_plans(), 2)), accept, mutants, 3);
  MESSAGE(to_text(r));
  CHECK(r.wrong_programs.empty());
  const int enough = rankc::test::plants_all() ? 1 : 10;  // mutants of each kind
  int kinds = 0;
  for (const auto& [kind, t] : r.by_kind) {
    if (kind.starts_with("order: ")) continue;
    CAPTURE(kind);
    ++kinds;
    if (t.mutants < enough) continue;
    CHECK(t.different > 0);
    CHECK(t.different_f64 > 0);
  }
  CHECK(kinds >= (rankc::test::plants_all() ? 52 : 45));
  CHECK(r.total.mutants == mutants);
  CHECK(r.total.different * 10 > r.total.mutants * 7);
  CHECK(r.total.proven_wrong * 10 > r.total.mutants * 5);
  CHECK(r.total.mutants - r.total.different > mutants / 28);
  const auto in_f64 = [](const std::string& text) { return text.find(": in f64 ") != std::string::npos; };
  CHECK(std::count_if(r.false_accepts.begin(), r.false_accepts.end(), in_f64) * 10 > r.total.mutants * 5);
  // The field stores exp of the target's logit, and kernels the logit. A common factor of both sums of a
  // token shows in f64 alone.
  for (const auto& [kind, texts] : r.f64_only)
    for (const std::string& text : texts)
      CHECK_MESSAGE(text.find("exp_sums\" scale") != std::string::npos,
                    "equal over the field, different in f64: " << text);
  CHECK(r.total.field_only * 100 < r.total.mutants);
}

}  // namespace mutants_test
