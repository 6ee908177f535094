// SPDX-License-Identifier: Apache-2.0
// Plans with ignored labels, lowered for both targets, and programs that compute another mean than the model.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "../codegen/equivalence/subject.hpp"
#include "../families/check_lowered.hpp"
#include "models.hpp"
#include "plans.hpp"

namespace masked_lowering_test {

using namespace rankc::codegen;
using equivalence_tests::subject;

namespace {

using rankc::parallel_dims;
using rankc::training;

rankc::plan_data plan_of(std::string_view layout, std::string_view job = "llama") {
  const std::vector<split_plan> all = masked::plans();
  return std::find_if(all.begin(), all.end(),
                      [&](const split_plan& p) { return p.job == job && p.layout == layout; })
      ->plan;
}

bool is_refused_as(const std::string& reason, const char* id) { return reason.find(id) != std::string::npos; }

}  // namespace

TEST_CASE("programs with ignored labels are proven and are the model") {
  std::vector<rankc::plan_data> all;
  for (const split_plan& p : masked::plans()) all.push_back(p.plan);
  REQUIRE(all.size() == RANKC_PLANS);
  for (const rankc::plan_data& p : all)
    for (const rankc::trace& layer : p.on_one_device) CHECK(layer.said.empty());
  const training recipe{.seq = 16, .global_batch = 8, .ignored_label = -100};
  training eight_bits = recipe, adapting = recipe, rounded = recipe;
  eight_bits.linears = rankc::fp8;
  adapting.lora = {.rank = 2, .alpha = 4, .targets = {"wq", "wv"}};
  rounded.reductions = rankc::bf16;
  for (const training& r : {eight_bits, adapting, rounded}) {
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
  const auto without = [](const char* layout, const char* op_name, bool evaluates) {
    subject s(plan_of(layout), target::host, dtype::f64, evaluates);
    REQUIRE(s.reason() == "");
    bool any = false;
    for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
      for (op* o : s.find(r, op_name)) {
        s.leave_out(r, *o);
        any = true;
      }
    REQUIRE(any);
    return s.reason();
  };
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
          is_refused_as(without(layout, name, evaluates),
                        "masked_cross_entropy: RC7428: operand count is head: count_labels without tokens"));
    }
  }
}

TEST_CASE("a program that does not tell ranks that no label counts is refused") {
  for (const char* layout : {"one", "dp2", "eight"}) {
    CAPTURE(layout);
    subject left_out(plan_of(layout), target::host, dtype::f64);
    for (int r = 0; r < static_cast<int>(left_out.p.ranks.size()); ++r)
      for (op* o : left_out.find(r, "no labels")) left_out.leave_out(r, *o);
    CHECK(is_refused_as(left_out.reason(),
                        "RC7792: the norm lacks the term that makes ranks skip a step without labels"));
  }
}

}  // namespace masked_lowering_test
