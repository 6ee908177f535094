// SPDX-License-Identifier: Apache-2.0
// The plans of a model on so many GPUs by rankc's own cost model: each is checked, its memory counted and its step
// predicted as the compiler would.
#pragma once
#include <rankc/models/gpt2.hpp>
#include <rankc/models/llama.hpp>
#include <rankc/models/mixtral.hpp>
#include <rankc/models/qwen3.hpp>
#include <rankc/models/qwen3_moe.hpp>
#include <rankc/planner/fastest.hpp>

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "lines.hpp"

namespace rankc::tool {

using any_model = std::variant<models::gpt2, models::llama, models::qwen3, models::qwen3_moe, models::mixtral>;

/// What plans are for.
struct plan_question : planner::question {
  any_model model{};
};
using plan_choice = planner::choice;
using judged_plan = planner::judged;

/// What a choice would take. Errors: those of the rules, to the report; nothing is said of memory.
std::optional<judged_plan> judge(const plan_question&, const plan_choice&, report&);

/// The fastest plan that fits, as rankc/best_plan.hpp finds it.
std::optional<judged_plan> find_fastest(const plan_question&);

/// The legal plans of a question, those that fit first, the fastest first. `progress` hears how many choices of all were
/// judged.
struct plan_ranking {
  std::size_t choices = 0, legal = 0;
  std::vector<judged_plan> fitting;
};
plan_ranking rank_plans(const plan_question&, const std::function<void(std::size_t, std::size_t)>& progress = {});

/// The choices that a search judges.
std::vector<plan_choice> choices_of(const plan_question&);

/// Those of the fitting plans that no other is both faster and smaller than, the fastest first.
std::vector<judged_plan> pareto_front(const std::vector<judged_plan>& by_time);

}  // namespace rankc::tool
