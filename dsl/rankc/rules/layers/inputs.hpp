// SPDX-License-Identifier: Apache-2.0
// RC266: the inputs that a model declares.
#pragma once
#include <rankc/models/trace_layer.hpp>

#include <span>

namespace rankc::detail {

/// Starts the sentence of RC266 about one input.
constexpr sentence& refuse_input(report& out, const named_input& input) {
  return refuse(out, 266) << "the model declares the input '" << input.name << "'";
}

/// RC266: the name of an input is an identifier and unique.
constexpr void check_input_name(report& out, std::span<const named_input> all, std::size_t i) {
  const named_input& input = all[i];
  const bool is_changed_starts = input.name == inputs::starts.name && input != inputs::starts,
             is_second = find_input(all, input.name) != static_cast<int>(i);
  if (!is_identifier(input.name))
    refuse_input(out, input)
        << "; the name of an input has letters, digits and '_', and begins with no digit";
  else if (is_second || is_changed_starts)
    refuse_input(out, input) << ", and another input of the step has this name; take another one";
}

/// RC266: an input has a type that engines convert to. A range or whole sequences are set only if they apply.
constexpr void check_input_form(report& out, const named_input& input) {
  if (is_fp8(input.holds))
    refuse_input(out, input)
        << " in fp8; take element::index, element::wide or element::real (the plan's precision)";
  else if (input.below < 0 || (input.below > 0 && input.holds != element::index))
    refuse_input(out, input) << " with below=" << input.below
                             << "; only element::index takes below: at least 1, or 0 for any index";
  else if (input.whole_sequences && input.extent != input_extent::token)
    refuse_input(out, input) << " with whole_sequences and without a row for each token; leave out "
                                "whole_sequences or extent";
}

/// RC266: the first declared input of a model without tokens is the input of its first layer.
constexpr void check_first_input(report& out, std::span<const named_input> all, const training& recipe) {
  if (all.empty()) {
    refuse(out, 266)
        << "the model reads no tokens and declares no inputs; its first layer reads the first of "
           "inputs(): declare one";
    return;
  }
  if (all.front().extent != input_extent::token || all.front().whole_sequences)
    refuse_input(out, all.front())
        << " first, which is the input of its first layer; that input has a row for "
           "each token of the rank: leave out extent and whole_sequences";
  for (const named_input& input : all)
    if (input.name == inputs::tokens.name || input.name == inputs::targets.name ||
        input.name == inputs::starts.name)
      refuse_input(out, input)
          << ", which is the name of an input of models that read tokens; take another name";
  if (recipe.has_documents())
    refuse(out, 266) << "the model reads no tokens, and end_of_document=" << recipe.end_of_document
                     << " is the token that ends documents; leave out end_of_document";
}

/// RC266: the inputs of a step.
constexpr void check_inputs(report& out, std::span<const named_input> all, const auto& model,
                            const training& recipe) {
  if (!reads_tokens(model)) check_first_input(out, all, recipe);
  for (std::size_t i = 0; i < all.size(); ++i) {
    check_input_name(out, all, i);
    check_input_form(out, all[i]);
  }
}

/// RC266: the layer that reads the first declared input is repeated.
constexpr void refuse_repeated_input(report& out, std::string_view layer, const named_input& input) {
  refuse_input(out, input) << " first, and layer '" << layer
                           << "', which reads it, is repeated; begin with a layer that is not repeated";
}

}  // namespace rankc::detail
