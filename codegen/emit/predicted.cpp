// SPDX-License-Identifier: Apache-2.0
// Predicts the time of a step on the GPUs of the plan's cluster, if rankc knows them.
#include <fmt/format.h>

#include <rankc/cost_model/calibrations.hpp>

#include "predicted.hpp"

namespace rankc::codegen {

std::optional<prediction> predict(const lowered& l) {
  const cost_model::gpu_speed* const g = cost_model::find_speed(l.plan->machines.gpu);
  if (l.target != target::cuda || l.type != dtype::bf16 || !g) return {};
  const rankc::lowering::layer_setting s = rankc::lowering::setting_of(*l.plan, bf16, l.target);
  const std::vector<rankc::lowering::layer_program> layers = rankc::lowering::lower_layers(*l.plan, s);
  return prediction{g->name, cost_model::predict_step(*l.plan, *g, s, layers),
                    cost_model::predict_stages(*l.plan, *g, s, layers)};
}

std::vector<std::pair<std::string_view, double>> terms_of(const cost_model::step_prediction& s) {
  return {{"products", s.products},   {"attention", s.attention}, {"passes over memory", s.passes},
          {"optimizer", s.optimizer}, {"communication", s.links}, {"bubble", s.bubble},
          {"power", s.limited}};
}

std::string predicted_text(const lowered& l) {
  const std::optional<prediction> p = predict(l);
  if (!p) return "";
  std::string terms;
  for (const auto& [name, seconds] : terms_of(p->step))
    if (const double share = 100 * seconds / p->step.step; share >= 0.5)
      terms += fmt::format("{}{} {:.0f} %", terms.empty() ? "" : ", ", name, share);
  const double tokens = static_cast<double>(l.plan->recipe.global_batch) * l.plan->recipe.seq;
  return fmt::format("predicted on {}: {:.4g} ms a step, {:.0f} tokens/s; {}\n", p->gpu, 1e3 * p->step.step,
                     tokens / p->step.step, terms);
}

}  // namespace rankc::codegen
