// SPDX-License-Identifier: Apache-2.0
#include "plan_search.hpp"

namespace rankc::tool {

std::optional<judged_plan> judge(const plan_question& q, const plan_choice& c, report& out) {
  return std::visit([&](const auto& model) { return plan_search::judge(model, q, c, out); }, q.model);
}

std::vector<double> steps_on(const plan_question& q, const plan_choice& c,
                             std::span<const cost_model::gpu_speed> gpus) {
  return std::visit(
      [&](const auto& model) {
        const plan_data counted = plan_search::plan_of(model, q, c);
        const lowering::layer_setting s = rankc::detail::setting_for(counted, target::cuda);
        const std::vector<lowering::layer_program> layers = lowering::lower_layers(counted, s);
        std::vector<double> steps;
        for (const cost_model::gpu_speed& g : gpus)
          steps.push_back(cost_model::predict_step(counted, g, s, layers).step);
        return steps;
      },
      q.model);
}

plan_search::ranking rank_plans(const plan_question& q, const plan_search::wanted& w,
                                const plan_progress& progress) {
  return std::visit(
      [&](const auto& model) {
        return plan_search::rank_plans(model, q, w,
                                       [&](const plan_search::looked_at& so_far, std::size_t open) {
                                         if (progress) progress(so_far, open);
                                       });
      },
      q.model);
}

long long count_choices(const plan_question& q) {
  const int experts = std::visit([](const auto& model) { return plan_search::experts_of(model); }, q.model);
  long long n = 0;
  for (const plan_search::unscheduled& c : plan_search::unscheduled_choices(q, experts))
    n += static_cast<long long>(plan_search::schedules_of(c.dims.pp, c.microbatches).size());
  return n;
}

}  // namespace rankc::tool
