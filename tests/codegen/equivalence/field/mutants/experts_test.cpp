// SPDX-License-Identifier: Apache-2.0
// Expert parallelism and router losses: the checker over terms accepts no mutant that differs, and both
// verdicts refuse a program that lacks one of the sums in the losses.
#include <doctest/doctest.h>

#include "check_report.hpp"
#include "checker.hpp"
#include "../machine/execution.hpp"
#include "judge.hpp"
#include "mutants.hpp"

#include <algorithm>

#include "../../../../some_of.hpp"

namespace experts_test {

using namespace field;

namespace {

using namespace rankc::codegen;

/// Judge mutants. `alike`: the percentage that may differ over the field and be equal in f64.
report judged(const std::vector<rankc::plan_data>& plans, int count, int alike = 1) {
  count = rankc::test::some_of(count);
  const report r = judge_mutants(subjects_of(plans), compare_terms, count, 11);
  check_report(r);
  CHECK(r.total.mutants == count);
  CHECK(r.total.proven_wrong * 2 > count);
  CHECK(r.total.field_only * 100 < alike * count);
  return r;
}

/// Whether an op sums router statistics in the last layer.
bool is_of_routers(const op& o) {
  return o.kind == op_kind::collective && o.name.starts_with("head: all_reduce of") &&
         (o.name.ends_with("statistics") || o.name.find(" over ") != o.name.npos);
}

}  // namespace

TEST_CASE(
    "experts on ranks of their own: the checker accepts no mutant that is different, exchanges among others "
    "and in small slabs too") {
  const report r = judged(spread_plans(), 700);
  for (const char* kind : {"other ranks", "other slots", "smaller slabs", "order of members"}) {
    CAPTURE(kind);
    CHECK(r.by_kind.at(kind).different > 0);
    CHECK(r.by_kind.at(kind).different_f64 > 0);
  }
}

TEST_CASE("smaller slabs are refused though these choices have room: others may have none") {
  int refused = 0, equal = 0;
  for (const subject& s : subjects_of(spread_plans()))
    for (unsigned seed = 0, found = 0; seed < 10 && found < 2; ++seed) {
      program p = s.program;
      std::mt19937 random(seed);
      if (shrink_slabs(p, random).kind.empty()) continue;
      CAPTURE(s.name);
      CHECK_FALSE(check_terms(p, s.model).empty());
      equal += execution::over_field(s.model)->run(p).equal;
      ++refused;
      ++found;
    }
  CHECK(refused > 20);
  CHECK(equal > 0);
}

TEST_CASE(
    "experts on an axis of their own: the checker accepts no mutant that is different, and none without a "
    "sum over that axis") {
  const report r = judged(apart_plans(), 500, 3);  // some have a bias
  CHECK(r.by_kind.at("leave out a reduction").different > 0);
  int sums = 0;
  for (const subject& s : subjects_of(apart_plans())) {
    const auto is_over_ep = [&](const op& o) {
      return o.kind == op_kind::collective &&
             s.program.communicators[static_cast<std::size_t>(o.communicator)].name.starts_with("ep ");
    };
    std::vector<std::string> names;
    for (const op& o : s.program.ranks[0].ops)
      if (is_over_ep(o) && std::find(names.begin(), names.end(), o.name) == names.end())
        names.push_back(o.name);
    for (const std::string& name : names) {
      CAPTURE(s.name);
      CAPTURE(name);
      program p = s.program;
      for (rank_program& each : p.ranks)
        for (op& o : each.ops)
          if (is_over_ep(o) && o.name == name) leave_out_sum(p, o);
      CHECK_FALSE(check_terms(p, s.model).empty());
      CHECK_FALSE(execution::over_field(s.model)->run(p).equal);
      CHECK_FALSE(execution::in_f64(s.model)->run(p).equal);
      ++sums;
    }
  }
  CHECK(sums == 25);
}

TEST_CASE("losses of routers: the checker accepts no mutant that is different") {
  const report r = judged(balanced_plans(), 700);
  CHECK(r.by_kind.at("leave out a reduction").different > 0);
}

TEST_CASE(
    "biases of routers: the checker accepts no mutant that is different, and none that moves a bias "
    "otherwise") {
  judged(biased_plans(), 700, 3);  // in f64, other scores may choose the same experts
  for (const subject& s : subjects_of(biased_plans()))
    for (const rankc::load_balance by : {rankc::load_balance{0.02, 8}, {0.01, 9}}) {
      program p = s.program;
      int moved = 0;
      for (op& o : p.ranks[0].ops)
        for (view& v : o.views)
          if (v.port == "balanced_weight") {
            v.balances = by;
            ++moved;
          }
      if (moved == 0) continue;  // an evaluation moves no bias
      CAPTURE(s.name);
      CHECK_FALSE(check_terms(p, s.model).empty());
      CHECK_FALSE(execution::over_field(s.model)->run(p).equal);
      // Most numbers are on the same side of both means.
      if (by.rate != 0.01) CHECK_FALSE(execution::in_f64(s.model)->run(p).equal);
    }
}

TEST_CASE(
    "a program without one of the sums over the ranks of a batch, or over tp, is refused, and differs") {
  int sums = 0;
  for (const subject& s : subjects_of(balanced_plans())) {
    std::vector<std::string> names;
    for (const rank_program& r : s.program.ranks)
      for (const op& o : r.ops)
        if (is_of_routers(o) && std::find(names.begin(), names.end(), o.name) == names.end())
          names.push_back(o.name);
    for (const std::string& name : names) {
      CAPTURE(s.name);
      CAPTURE(name);
      program p = s.program;
      for (rank_program& r : p.ranks)
        for (std::size_t i = 0; i < r.ops.size(); ++i)
          if (is_of_routers(r.ops[i]) && r.ops[i].name == name) leave_out_sum(p, r.ops[i]);
      CHECK_FALSE(check_terms(p, s.model).empty());
      CHECK_FALSE(execution::over_field(s.model)->run(p).equal);
      CHECK_FALSE(execution::in_f64(s.model)->run(p).equal);
      ++sums;
    }
  }
  CHECK(sums == 16);
}

}  // namespace experts_test
