// SPDX-License-Identifier: Apache-2.0
// Plans with weights of labels, lowered for both targets, and programs that compute another mean than the
// model.
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../families/check_lowered.hpp"
#include "../masked/left_out.hpp"
#include "../families/own_means.hpp"
#include "../masked/models.hpp"
#include "plans.hpp"

namespace weighted_lowering_test {

using namespace rankc::codegen;
using equivalence_tests::subject;
using masked::is_refused_as;
using masked::reason_without;

namespace {

using rankc::parallel_dims;
using rankc::training;

rankc::plan_data plan_of(const char* layout) { return find_plan(weighted::plans(), "llama", layout); }

rankc::plan_data with_recipe(const training& recipe, const parallel_dims& dims) {
  return rankc::make_plan("weighted", masked::wide, dims, rankc::schedules::one_f_one_b{2}, recipe,
                          rankc::clusters::cpu);
}

}  // namespace

TEST_CASE("programs with weights of labels are proven and are the model") {
  std::vector<rankc::plan_data> all;
  for (const split_plan& p : weighted::plans()) all.push_back(p.plan);
  REQUIRE(all.size() + weighted::more_layouts().size() == RANKC_PLANS);
  for (const rankc::plan_data& p : all)
    for (const rankc::trace& layer : p.on_one_device) CHECK(layer.said.empty());
  const training recipe{.seq = 16, .global_batch = 8, .token_weights = true};
  for (const training& r : masked::variants_of(recipe)) {
    all.push_back(with_recipe(r, {.world = 4, .dp_shard = 2, .tp = 2}));
    all.push_back(with_recipe(r, {.world = 4, .dp_replicate = 2, .pp = 2}));
  }
  CHECK(check_lowered(all) == lowered_programs_of(static_cast<int>(all.size())));
}

TEST_CASE("a mean over labels without weights is not the weighted mean") {
  training recipe{.seq = 16, .global_batch = 8, .precision = rankc::f64, .ignored_label = -100};
  const rankc::plan_data counting = with_recipe(recipe, {.world = 2, .dp_replicate = 2});
  recipe.token_weights = true;
  const rankc::plan_data weighing = with_recipe(recipe, {.world = 2, .dp_replicate = 2});
  subject s(counting, target::host, dtype::f64), t(weighing, target::host, dtype::f64);
  REQUIRE(s.reason() == "");
  REQUIRE(t.reason() == "");
  std::swap(s.model, t.model);
  CHECK(is_refused_as(s.reason(), "RC7433: the op computes count_labels"));
  CHECK(is_refused_as(t.reason(), "RC7766: the step is given the input \"weights\""));
}

TEST_CASE("a sum of a rank's own weights, or of a microbatch's, is refused") {
  for (const bool evaluates : {false, true}) {
    CAPTURE(evaluates);
    for (const auto& [layout, name] : {std::pair("dp2", "sum of label weights over dp"),
                                       {"shard2", "sum of label weights over shard"},
                                       {"gathered", "sum of label weights over"},
                                       {"hybrid", "sum of label weights over shard"},
                                       {"eight", "sum of label weights over"},
                                       {"four", "label weights of microbatch 2"},
                                       {"pp2", "label weights of microbatch 3"}}) {
      CAPTURE(std::string(layout));
      CHECK(
          is_refused_as(reason_without(plan_of(layout), name, evaluates),
                        "weighted_cross_entropy: RC7428: operand count is head: sum_weights without tokens"));
    }
  }
}

TEST_CASE("a mean of weighted means is refused in every plan, by each sum that is left out") {
  const int refused =
      own_means::refuse_all(weighted::plans(), {"sum of label weights over", "label weights of microbatch"});
  CHECK(refused >= 5);
  MESSAGE(refused << " means of weighted means are refused");
}

TEST_CASE("weights of other tokens are refused") {
  for (const char* row : {"sum_weights", "weighted_cross_entropy", "weighted_cross_entropy_grad"}) {
    CAPTURE(std::string(row));
    subject s(plan_of("four"), target::host, dtype::f64);
    const std::vector<op*> found = s.find(0, "", row);
    REQUIRE(found.size() == 4);
    std::swap(subject::read_of(*found[1], "weights"), subject::read_of(*found[2], "weights"));
    CHECK(is_refused_as(s.reason(), "weights"));
  }
}

TEST_CASE("a sum of weights that is sent in bf16 is refused") {
  const training recipe{.seq = 16, .global_batch = 8, .reductions = rankc::bf16, .token_weights = true};
  subject s(with_recipe(recipe, {.world = 4, .dp_replicate = 2, .tp = 2}), target::cuda, dtype::bf16);
  REQUIRE(s.reason() == "");
  for (op* o : s.find_all("sum of label weights over dp")) o->in_bf16 = true;
  CHECK(is_refused_as(s.reason(), "RC7787"));
}

TEST_CASE("a program that does not tell ranks that all weights are 0 is refused") {
  for (const char* layout : {"one", "dp2", "eight"}) {
    CAPTURE(std::string(layout));
    CHECK(is_refused_as(reason_without(plan_of(layout), "no labels"),
                        "RC7792: the norm lacks the term that makes ranks skip a step without labels"));
  }
}

TEST_CASE("a program with weights is another program") {
  std::set<std::uint64_t> all;
  for (const int ignored_label : {rankc::every_label_counts, -100})
    for (const bool token_weights : {false, true}) {
      const training recipe{
          .seq = 16, .global_batch = 8, .ignored_label = ignored_label, .token_weights = token_weights};
      all.insert(lower(with_recipe(recipe, {}), dtype::f32, target::host).hash);
    }
  CHECK(all.size() == 4);
}

}  // namespace weighted_lowering_test
