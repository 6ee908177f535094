// SPDX-License-Identifier: Apache-2.0
// Plans with ignored labels, lowered for both targets, and programs that compute another mean than the model.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../families/check_lowered.hpp"
#include "left_out.hpp"
#include "../families/own_means.hpp"
#include "models.hpp"
#include "plans.hpp"

namespace masked_lowering_test {

using namespace rankc::codegen;
using equivalence_tests::subject;
using masked::is_refused_as;
using masked::reason_without;

namespace {

using rankc::parallel_dims;
using rankc::training;

rankc::plan_data plan_of(std::string_view layout, std::string_view job = "llama") {
  const std::vector<split_plan> all = masked::plans();
  return std::find_if(all.begin(), all.end(),
                      [&](const split_plan& p) { return p.job == job && p.layout == layout; })
      ->plan;
}

}  // namespace

TEST_CASE("programs with ignored labels are proven and are the model") {
  std::vector<rankc::plan_data> all;
  for (const split_plan& p : masked::plans()) all.push_back(p.plan);
  REQUIRE(all.size() == RANKC_PLANS);
  for (const rankc::plan_data& p : all)
    for (const rankc::trace& layer : p.on_one_device) CHECK(layer.said.empty());
  const training recipe{.seq = 16, .global_batch = 8, .ignored_label = -100};
  for (const training& r : masked::variants_of(recipe)) {
    all.push_back(masked::wide_plan(r, {.world = 4, .dp_shard = 2, .tp = 2}));
    all.push_back(masked::wide_plan(r, {.world = 4, .dp_replicate = 2, .pp = 2}));
  }
  CHECK(check_lowered(all) == lowered_programs_of(static_cast<int>(all.size())));
}

TEST_CASE("a mean over all tokens is not the mean over the labels that count") {
  training recipe{.seq = 16, .global_batch = 8, .precision = rankc::f64};
  const auto lowered_with = [&](int ignored_label) {
    recipe.ignored_label = ignored_label;
    return masked::wide_plan(recipe, {.world = 2, .dp_replicate = 2});
  };
  const rankc::plan_data plain = lowered_with(rankc::every_label_counts), ignoring = lowered_with(-100);
  subject s(plain, target::host, dtype::f64), t(ignoring, target::host, dtype::f64);
  REQUIRE(s.reason() == "");
  REQUIRE(t.reason() == "");
  std::swap(s.model, t.model);
  CHECK(is_refused_as(s.reason(), "RC7433: the op computes cross_entropy"));
  CHECK(is_refused_as(t.reason(), "RC7433: the op computes count_labels"));
}

TEST_CASE("a count of a rank's own labels, or of a microbatch's, is refused") {
  for (const bool evaluates : {false, true}) {
    CAPTURE(evaluates);
    for (const auto& [layout, name] : {std::pair("dp2", "number of labels over dp"),
                                       {"shard2", "number of labels over shard"},
                                       {"cp2", "number of labels over"},
                                       {"hybrid", "number of labels over shard"},
                                       {"eight", "number of labels over dp"},
                                       {"four", "labels of microbatch 2"},
                                       {"pp2", "labels of microbatch 3"}}) {
      CAPTURE(std::string(layout));
      CHECK(
          is_refused_as(reason_without(plan_of(layout), name, evaluates),
                        "masked_cross_entropy: RC7428: operand count is head: count_labels without tokens"));
    }
  }
}

TEST_CASE("a mean of means is refused in every plan, by each sum that is left out") {
  const int refused =
      own_means::refuse_all(masked::plans(), {"number of labels over", "labels of microbatch"});
  CHECK(refused >= 5);
  MESSAGE(refused << " means of means are refused");
}

TEST_CASE("a program that does not tell ranks that no label counts is refused") {
  for (const char* layout : {"one", "dp2", "eight"}) {
    CAPTURE(layout);
    CHECK(is_refused_as(reason_without(plan_of(layout), "no labels"),
                        "RC7792: the norm lacks the term that makes ranks skip a step without labels"));
  }
}

}  // namespace masked_lowering_test
