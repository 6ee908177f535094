// SPDX-License-Identifier: Apache-2.0
// The findings of a search: why the first plan is the fastest, or why there is none, and to which constants
// its prediction is sensitive.
#pragma once
#include "plan_request.hpp"

namespace rankc::tool {

/// A part of a step's time.
struct step_term {
  std::string_view name;
  double cost_model::step_prediction::* at;
};
inline constexpr step_term step_terms[]{{"products", &cost_model::step_prediction::products},
                                        {"attention", &cost_model::step_prediction::attention},
                                        {"passes", &cost_model::step_prediction::passes},
                                        {"optimizer", &cost_model::step_prediction::optimizer},
                                        {"links", &cost_model::step_prediction::links},
                                        {"bubble", &cost_model::step_prediction::bubble},
                                        {"power", &cost_model::step_prediction::limited}};

/// The change of a step in percent if a constant of the GPU is 1 percent larger.
struct sensitivity {
  std::string_view constant;
  double percent;
};

struct plan_findings {
  long long candidates = 0;
  plan_search::ranking found;  // at least two plans, if there are two
  std::string why;
  std::vector<sensitivity> of_constants;  // for the fastest plan; the largest first
  /// The plans that the request asks for.
  std::span<const judged_plan> shown(const plan_request& r) const {
    return std::span(found.top).first(std::min(found.top.size(), static_cast<std::size_t>(r.top)));
  }
};

/// Searches for the plans of a request. `front`: also for the plans that no other plan beats in time and
/// memory.
plan_findings find_plans(const plan_request&, bool front, const plan_progress& progress = {});

std::vector<sensitivity> sensitivities(const plan_question&, const judged_plan&);

/// "1 % more of a constant changes the step most for power (-1.20 %), ...". Shapes: at least one.
std::string text_of(std::span<const sensitivity>);

/// Why no plan fits: the plan that comes nearest, or the rule that keeps all plans from being legal.
std::string why_none(const plan_question&, long long candidates);

}  // namespace rankc::tool
