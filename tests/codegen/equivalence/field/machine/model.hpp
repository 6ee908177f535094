// SPDX-License-Identifier: Apache-2.0
// Runs a model on one device over the field, or in f64, on the whole batch of a step: forward by its
// specification, backward in the reverse order by each row's gradients, then the norm and the update. The
// programs of all ranks must end in the same state.
#pragma once
#include "../rows/model_attributes.hpp"
#include "../rows/rows.hpp"

#include <rankc/codegen/specification.hpp>

#include <map>
#include <string>

namespace field {

/// A parameter in row-major order: its state before the step, its gradient, and its state after the step.
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
  bool counts_labels = false;    // the norm has the term by which ranks skip a step without labels
  element largest_gradient = 0;  // over all trained parameters
  rankc::codegen::specification::update optimizer;
  std::map<std::string, parameter_run> parameters;
  std::vector<element> ids, targets;  // one step's tokens
  model_attributes attributes;        // the model's ops
  // Where the tokens' documents begin in their sequences; empty without documents.
  std::vector<element> starts;
  std::vector<element> weights;  // one for each token; empty if labels have no weights
};

/// Draw parameters, moments and tokens before a step.
model_run draw_start(const rankc::codegen::specification&);
model_run run_model(const rankc::codegen::specification&, model_run start);
inline model_run run_model(const rankc::codegen::specification& s) { return run_model(s, draw_start(s)); }
/// The loss of a step, by forward alone.
element loss_of(const rankc::codegen::specification&, model_run start);

/// An optimizer's update of one element, with or without weight decay, or of a router's bias. Over the field,
/// the result is drawn from all inputs. Moments that the optimizer does not have are 0.
struct updated {
  element weight, first_moment, second_moment;
};
updated update(std::string_view optimizer, element weight, element gradient, element first_moment,
               element second_moment, element norm, bool decays, const rankc::load_balance& balances);

}  // namespace field
