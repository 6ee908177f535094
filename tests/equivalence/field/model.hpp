// SPDX-License-Identifier: Apache-2.0
// A model on one device, run over the field, or in f64, on the whole batch of a step: forward as the
// specification has it, backward in the reverse order by each row's gradients, then the norm and the update.
// What the programs of all ranks must come to.
#pragma once
#include "model_attributes.hpp"
#include "rows.hpp"

#include <rankc/codegen/specification.hpp>

#include <map>
#include <string>

namespace field {

/// A parameter in row-major order: before a step, its gradient, and after the step.
struct parameter_run {
  extent is;
  std::size_t ndim = 0;
  bool trainable = true;
  rankc::load_balance balances{};
  std::vector<element> weight, first_moment, second_moment;
  std::vector<element> gradient;
  std::vector<element> new_weight, new_first_moment, new_second_moment;
};

struct model_run {
  element loss = 0, norm = 0;
  bool counts_labels = false;    // the norm has the addend by which ranks skip a step without labels
  element largest_gradient = 0;  // of all that are trained
  rankc::codegen::specification::update optimizer;
  std::map<std::string, parameter_run> parameters;
  std::vector<element> ids, targets;  // of the tokens of a step
  model_attributes attributes;        // of its ops
  std::vector<element> starts;        // and where their documents begin in their sequences, if these have any
};

/// Parameters, moments and tokens before a step.
model_run draw_start(const rankc::codegen::specification&);
model_run run_model(const rankc::codegen::specification&, model_run start);
inline model_run run_model(const rankc::codegen::specification& s) { return run_model(s, draw_start(s)); }

/// An optimizer's update of one element, whose weight decays or not, or is moved as a router's bias: over the
/// field drawn of all that it depends on. A moment that the optimizer has not is 0.
struct updated {
  element weight, first_moment, second_moment;
};
updated update(std::string_view optimizer, element weight, element gradient, element first_moment,
               element second_moment, element norm, bool decays, const rankc::load_balance& balances);

}  // namespace field
