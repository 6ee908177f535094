// SPDX-License-Identifier: Apache-2.0
// The plans of a model on so many GPUs by rankc's own cost model: each is checked, its memory counted and its
// step predicted as the compiler would.
#pragma once
#include <rankc/models/gpt2.hpp>
#include <rankc/models/llama.hpp>
#include <rankc/models/mixtral.hpp>
#include <rankc/models/qwen2.hpp>
#include <rankc/models/qwen3.hpp>
#include <rankc/models/qwen3_moe.hpp>
#include <rankc/plan_search/ranking.hpp>

#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "lines.hpp"

namespace rankc::tool {

using any_model = std::variant<models::gpt2, models::llama, models::qwen2, models::qwen3, models::qwen3_moe,
                               models::mixtral>;

/// What plans are for.
struct plan_question : plan_search::question {
  any_model model{};
};
using plan_choice = plan_search::choice;
using judged_plan = plan_search::judged;

/// What a choice would take. Errors: those of the rules, to the report; nothing is said of memory.
std::optional<judged_plan> judge(const plan_question&, const plan_choice&, report&);

/// The step of a choice on each of several GPUs. The choice breaks no rule. Units: seconds.
std::vector<double> steps_on(const plan_question&, const plan_choice&,
                             std::span<const cost_model::gpu_speed>);

/// The plans of a question that are wanted, as rankc/best_plan.hpp finds the first. `progress(looked_at, how
/// many choices are still to be looked at)` hears of each.
using plan_progress = std::function<void(const plan_search::looked_at&, std::size_t)>;
plan_search::ranking rank_plans(const plan_question&, const plan_search::wanted&,
                                const plan_progress& progress = {});

/// How many plans a search chooses from.
long long count_choices(const plan_question&);

}  // namespace rankc::tool
