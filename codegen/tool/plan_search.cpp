// SPDX-License-Identifier: Apache-2.0
#include "plan_search.hpp"

#include <algorithm>

namespace rankc::tool {

std::optional<judged_plan> judge(const plan_question& q, const plan_choice& c, report& out) {
  return std::visit([&](const auto& model) { return planner::judge(model, q, c, out); }, q.model);
}

std::optional<judged_plan> find_fastest(const plan_question& q) {
  return std::visit([&](const auto& model) { return planner::fastest_search(model, q).find(); }, q.model);
}

std::vector<plan_choice> choices_of(const plan_question& q) {
  std::vector<plan_choice> all;
  const int experts = std::visit([](const auto& model) { return planner::experts_of(model); }, q.model);
  for (const planner::unscheduled& c : planner::unscheduled_choices(q, experts))
    for (const schedules::listed& s : planner::schedules_of(c.dims.pp, c.microbatches)) all.push_back({c, s});
  return all;
}

plan_ranking rank_plans(const plan_question& q, const std::function<void(std::size_t, std::size_t)>& progress) {
  const std::vector<plan_choice> choices = choices_of(q);
  plan_ranking found{.choices = choices.size(), .legal = 0, .fitting = {}};
  for (std::size_t i = 0; i < choices.size(); ++i) {
    report said;
    if (const auto j = judge(q, choices[i], said)) {
      ++found.legal;
      if (j->fits) found.fitting.push_back(*j);
    }
    if (progress) progress(i + 1, choices.size());
  }
  std::stable_sort(found.fitting.begin(), found.fitting.end(), [](const judged_plan& a, const judged_plan& b) { return a.is_before(b); });
  return found;
}

std::vector<judged_plan> pareto_front(const std::vector<judged_plan>& by_time) {
  std::vector<judged_plan> front;
  for (const judged_plan& j : by_time)
    if (front.empty() || j.bytes < front.back().bytes) front.push_back(j);
  return front;
}

}  // namespace rankc::tool
