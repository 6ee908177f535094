// SPDX-License-Identifier: Apache-2.0
// Declaration of a family's plans as FAMILY_JOB_LAYOUT. The family's recipe is the default.
#pragma once
#include "split_plan.hpp"

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <utility>

class plan_list {
 public:
  plan_list(std::string family, const rankc::training& recipe)
      : family_(std::move(family)), recipe_(recipe) {}

  void add(const std::string& job, const std::string& layout, const auto& model,
           const rankc::parallel_dims& dims, const auto& schedule, const rankc::training& by) {
    out.push_back({job, layout,
                   rankc::make_plan(family_ + "_" + job + "_" + layout, model, dims, schedule, by,
                                    rankc::clusters::cpu)});
  }
  void add(const std::string& job, const std::string& layout, const auto& model,
           const rankc::parallel_dims& dims, const auto& schedule) {
    add(job, layout, model, dims, schedule, recipe_);
  }

  std::vector<split_plan> out;

 private:
  const std::string family_;
  const rankc::training recipe_;
};

/// The same recipe with recomputation in backward.
constexpr rankc::training again(rankc::training recipe, const rankc::recomputation& of) {
  recipe.recompute = of;
  return recipe;
}
