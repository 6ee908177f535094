// SPDX-License-Identifier: Apache-2.0
// What a search found, and what there is to say of it: why the first is the first, or why there is none, and
// what its prediction is sensitive to.
#pragma once
#include "plan_request.hpp"

namespace rankc::tool {

/// What a step is made of.
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

/// By how many percent a step is longer where a constant of the GPU is 1 percent more.
struct sensitivity {
  std::string_view constant;
  double percent;
};

struct plan_findings {
  long long candidates = 0;
  plan_search::ranking found;  // at least two, where there are two
  std::string why;
  std::vector<sensitivity> of_constants;  // of the fastest, on which its step depends; the largest first
  /// Those that the request asks for.
  std::span<const judged_plan> shown(const plan_request& r) const {
    return std::span(found.top).first(std::min(found.top.size(), static_cast<std::size_t>(r.top)));
  }
};

/// Search for what a request asks for. `front`: and for the plans that none is both faster and smaller than.
plan_findings find_plans(const plan_request&, bool front, const plan_progress& progress = {});

std::vector<sensitivity> sensitivities(const plan_question&, const judged_plan&);

/// "1 % more of a constant changes the step most for power (-1.20 %), ...". Shapes: at least one.
std::string text_of(std::span<const sensitivity>);

/// Why no plan fits: which comes nearest, or what keeps any from being legal.
std::string why_none(const plan_question&, long long candidates);

}  // namespace rankc::tool
