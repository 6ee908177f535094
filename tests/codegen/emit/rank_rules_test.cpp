// SPDX-License-Identifier: Apache-2.0
// A program states its ranks and communicators as rules, whose text does not grow with the world.
#include <doctest/doctest.h>

#include <rankc/codegen/gate.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <algorithm>

#include "emit/emit.hpp"
#include "emit/rank_rules.hpp"

namespace rank_rules_test {

using namespace rankc::codegen;

namespace {

rankc::plan_data replicated(int dp) {
  return rankc::make_plan(
      "rules", rankc::models::gpt2{.layers = 4, .hidden = 16, .heads = 4, .ffn = 32, .vocab = 64},
      {.world = dp * 8, .dp_replicate = dp, .tp = 4, .pp = 2, .sequence_parallel = true},
      rankc::schedules::one_f_one_b{2},
      rankc::training{.seq = 8, .global_batch = 2 * dp, .precision = rankc::f32}, rankc::clusters::h200<512>);
}

long lines_of(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

}  // namespace

TEST_CASE("a program's text is as long for 4,096 ranks as for 16") {
  const rankc::plan_data small = replicated(2), large = replicated(512);
  REQUIRE(small.diagnostics.empty());
  REQUIRE(large.diagnostics.empty());
  const lowered few = lower(small, dtype::f32), many = lower(large, dtype::f32);
  CHECK(many.communicators.size() > 200 * few.communicators.size());
  CHECK(lines_of(rank_rules_text(many)) == lines_of(rank_rules_text(few)));
  const auto program = [](const lowered& l) { return emit(l, "host", check_or_throw(l)).at("program.cpp"); };
  CHECK(lines_of(program(many)) == lines_of(program(few)));
}

TEST_CASE("a rule names the coordinates that ranks have, and no lane that no rank has") {
  const rankc::plan_data plan = replicated(2);
  REQUIRE(plan.diagnostics.empty());
  const std::string text = rank_rules_text(lower(plan, dtype::f32));
  CHECK(text.find("// Rank = 8 pp + 4 dp + tp.") != text.npos);
  CHECK(text.find("constexpr rank_rule mesh{.pp = {2, 8}, .dp = {2, 4}, .tp = {4, 1}};") != text.npos);
  CHECK(text.find("{.across = {{2, 4}}, .communicators = along_dp,\n"
                  "     .place = {{\"pp\", {2, 8}}, {\"tp\", {4, 1}}}},") != text.npos);
  CHECK(text.find("overlap") == text.npos);
}

TEST_CASE("a single rank has no communicators") {
  const rankc::plan_data plan = rankc::make_plan(
      "alone", rankc::models::gpt2{.layers = 1, .hidden = 16, .heads = 4, .ffn = 32, .vocab = 64},
      {.world = 1}, rankc::schedules::gpipe{1},
      rankc::training{.seq = 8, .global_batch = 1, .precision = rankc::f32}, rankc::clusters::cpu);
  REQUIRE(plan.diagnostics.empty());
  CHECK(rank_rules_text(lower(plan, dtype::f32)) ==
        "// Rank = 0. Each coordinate has a size and a stride.\nconstexpr rank_rule mesh{};\n"
        "const rank_tables tables{mesh, layouts, {}};");
}

}  // namespace rank_rules_test
