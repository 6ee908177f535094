// SPDX-License-Identifier: Apache-2.0
// The plans of a model on a number of GPUs by rankc's own cost model. Each plan is checked, its memory
// counted and its step predicted, as the compiler would do it.
#pragma once
#include <rankc/plan_search/ranking.hpp>

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lines.hpp"
#include "model_families.hpp"

namespace rankc::tool {

/// The problem that plans solve.
struct plan_question : plan_search::question {
  any_model model{};
};
using plan_choice = plan_search::choice;
using judged_plan = plan_search::judged;

/// The memory and the step of a choice. Errors: those of the rules, to the report. The limit of memory is not
/// checked.
std::optional<judged_plan> judge(const plan_question&, const plan_choice&, report&);

/// The step of a choice on each of several GPUs. The choice must break no rule. Units: seconds.
std::vector<double> steps_on(const plan_question&, const plan_choice&,
                             std::span<const cost_model::gpu_speed>);

/// Ranks the plans that are wanted for a question. The first is the one that rankc/best_plan.hpp finds.
/// `progress` gets what was looked at, and the number of choices that are left.
using plan_progress = std::function<void(const plan_search::looked_at&, std::size_t)>;
plan_search::ranking rank_plans(const plan_question&, const plan_search::wanted&,
                                const plan_progress& progress = {});

/// The number of choices of a search.
long long count_choices(const plan_question&);

}  // namespace rankc::tool
