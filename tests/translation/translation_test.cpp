// SPDX-License-Identifier: Apache-2.0
// Printed texts equal the proven programs: all example plans and odd plans, on every rank.
#include "texts.hpp"

#include <balance/plans.hpp>
#include <columns/plans.hpp>
#include <documents/plans.hpp>
#include <doctest/doctest.h>
#include <experts/plans.hpp>
#include <fp8/plans.hpp>
#include <independent/plans.hpp>
#include <lora/plans.hpp>
#include <odd/plans.hpp>
#include <optimizer/plans.hpp>
#include <routing/plans.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>
#include <sequences/plans.hpp>

#include <string>

#include "../example_plans.hpp"
#include "../some_of.hpp"

namespace {

using rankc::runtime::dtype;
using translation::make_subject;
using translation::subject;

void check(const std::vector<subject>& subjects, const std::string& folder) {
  const auto wrong = translation::validate(subjects, folder, 2);
  for (const subject& s : subjects) {
    CAPTURE(s.plan.name);
    const auto found = wrong.find(std::string(s.plan.name));
    CHECK((found == wrong.end() ? "" : found->second) == "");
  }
}

}  // namespace

TEST_CASE("examples: the texts make the calls that were proven") {
  std::vector<subject> subjects;
  bool in_f32 = false;
  for (const char* name :
       {"gpt_one_rank", "gpt_pp2", "gpt_dp2_tp2_pp2", "llama3_8b", "gpt_dual_pipe_v", "gpt_by_hand"}) {
    const rankc::plan_data p = examples::plan(name);
    in_f32 = !in_f32;  // CUDA types alternate, unless all are tested
    subjects.push_back(make_subject(p, false, dtype::f32));
    if (in_f32 || rankc::test::plants_all()) subjects.push_back(make_subject(p, true, dtype::f32));
    if (!in_f32 || rankc::test::plants_all()) subjects.push_back(make_subject(p, true, dtype::bf16));
  }
  REQUIRE(subjects.size() == (rankc::test::plants_all() ? 18 : 12));
  check(subjects, "translation_examples");
}

TEST_CASE("examples: of 128 ranks those are held that stand for all") {
  constexpr rankc::models::gpt2 gpt{.layers = 4, .hidden = 16, .heads = 4, .ffn = 32, .vocab = 64};
  constexpr rankc::parallel_dims dims{
      .world = 128, .dp_replicate = 16, .tp = 2, .pp = 4, .sequence_parallel = true};
  constexpr rankc::training recipe{.seq = 8, .global_batch = 64, .precision = rankc::f32};
  const rankc::plan_data plan =
      make_plan("world", gpt, dims, rankc::schedules::one_f_one_b{4}, recipe, rankc::clusters::h200<16>);
  const subject host = make_subject(plan, false, dtype::f32);
  REQUIRE(translation::proven(host, true).ranks.size() == 16);
  check({host, make_subject(plan, true, dtype::bf16)}, "translation_world");
}

TEST_CASE("odd: the texts make the calls that were proven") {
  std::vector<subject> subjects;
  const auto plans = odd::plans();
  for (std::size_t i = 0; i < plans.size(); i += 2) {  // every second one, because compiling takes long
    subjects.push_back(make_subject(plans[i].plan, false, dtype::f64));
    subjects.push_back(make_subject(plans[i].plan, true, dtype::bf16));
  }
  REQUIRE(subjects.size() == 294);
  check(subjects, "translation_odd");
}

TEST_CASE("experts: the texts make the calls that were proven") {
  std::vector<subject> subjects;
  const auto plans = experts::plans();
  for (std::size_t i = 0; i < plans.size(); i += 5) {  // some of each family
    if (!rankc::test::takes(i / 5)) continue;
    subjects.push_back(make_subject(plans[i].plan, false, dtype::f64));
    subjects.push_back(make_subject(plans[i].plan, true, dtype::bf16));
  }
  REQUIRE(subjects.size() == 2 * rankc::test::some_of(24));
  check(subjects, "translation_experts");
}

TEST_CASE("columns: the texts make the calls that were proven") {
  std::vector<subject> subjects;
  const auto plans = columns::plans();
  for (std::size_t i = 2; i < plans.size(); i += 4) {
    subjects.push_back(make_subject(plans[i].plan, false, dtype::f64));
    subjects.push_back(make_subject(plans[i].plan, true, dtype::bf16));
  }
  REQUIRE(subjects.size() == 18);
  check(subjects, "translation_columns");
}

TEST_CASE("independent: the texts make the calls that were proven") {
  std::vector<subject> subjects;
  const auto plans = independent::plans();
  for (std::size_t i = 2; i < plans.size(); i += 3) {
    subjects.push_back(make_subject(plans[i].plan, false, dtype::f64));
    subjects.push_back(make_subject(plans[i].plan, true, dtype::bf16));
  }
  REQUIRE(subjects.size() == 16);
  check(subjects, "translation_independent");
}

TEST_CASE("balance: the texts make the calls that were proven") {
  std::vector<subject> subjects;
  const auto plans = balance::plans();
  for (std::size_t i = 1; i < plans.size(); i += 3) {
    subjects.push_back(make_subject(plans[i].plan, false, dtype::f64));
    subjects.push_back(make_subject(plans[i].plan, true, dtype::bf16));
  }
  REQUIRE(subjects.size() == 32);
  check(subjects, "translation_balance");
}

TEST_CASE("routing: the texts make the calls that were proven") {
  std::vector<subject> subjects;
  const auto plans = routing::plans();
  for (std::size_t i = 1; i < plans.size(); i += 3) {
    subjects.push_back(make_subject(plans[i].plan, false, dtype::f64));
    subjects.push_back(make_subject(plans[i].plan, true, dtype::bf16));
  }
  REQUIRE(subjects.size() == 38);
  check(subjects, "translation_routing");
}

TEST_CASE("lora: the texts make the calls that were proven") {
  std::vector<subject> subjects;
  for (const split_plan& v : adapting::plans()) subjects.push_back(make_subject(v.plan, true, dtype::bf16));
  REQUIRE(subjects.size() == 67);
  check(subjects, "translation_lora");
}

TEST_CASE("fp8: the texts make the calls that were proven") {
  std::vector<subject> subjects;
  const auto plans = narrowing::plans();
  for (std::size_t i = 2; i < plans.size(); i += 4) {
    subjects.push_back(make_subject(plans[i].plan, false, dtype::f64));
    subjects.push_back(make_subject(plans[i].plan, true, dtype::bf16));
  }
  REQUIRE(subjects.size() == 18);
  check(subjects, "translation_fp8");
}

TEST_CASE("sequences: the texts make the calls that were proven") {
  std::vector<subject> subjects;
  const auto plans = sequences::plans();
  for (std::size_t i = 1; i < plans.size(); i += 3) {  // every third one
    if (!rankc::test::takes(i / 3)) continue;
    subjects.push_back(make_subject(plans[i].plan, false, dtype::f64));
    subjects.push_back(make_subject(plans[i].plan, true, dtype::bf16));
  }
  REQUIRE(subjects.size() == 2 * rankc::test::some_of(24));
  check(subjects, "translation_sequences");
}

TEST_CASE("documents: the texts make the calls that were proven") {
  std::vector<subject> subjects;
  const auto plans = documents::plans();
  for (std::size_t i = 1; i < plans.size(); i += 3) {  // every third one
    subjects.push_back(make_subject(plans[i].plan, false, dtype::f64));
    subjects.push_back(make_subject(plans[i].plan, true, i % 2 ? dtype::bf16 : dtype::f32));
  }
  REQUIRE(subjects.size() == 20);
  check(subjects, "translation_documents");
}

TEST_CASE("optimizers: the texts make the calls that were proven") {
  std::vector<subject> subjects;
  for (const optimizing::variant& v : optimizing::plans()) {
    if (v.layout != "shard4" && !(v.layout == "dp2" && v.optimizer == "adamw_reduced")) continue;
    subjects.push_back(make_subject(v.plan, false, dtype::f64));
    subjects.push_back(make_subject(v.plan, true, dtype::bf16));
  }
  REQUIRE(subjects.size() == 26);
  check(subjects, "translation_optimizers");
}
