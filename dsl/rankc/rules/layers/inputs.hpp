// SPDX-License-Identifier: Apache-2.0
// RC266: the inputs that a model declares.
#pragma once
#include <rankc/models/trace_layer.hpp>

#include <span>

namespace rankc::detail {

/// RC266: the name of an input is an identifier and unique, and the input holds `index` or `wide`.
constexpr void check_inputs(report& out, std::span<const named_input> all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const named_input& input = all[i];
    if (!is_identifier(input.name)) {
      refuse(out, 266) << "the model declares the input '" << input.name
                       << "'; the name of an input has letters, digits and '_', and begins with no digit";
    } else if (find_input(all, input.name) != static_cast<int>(i) ||
               (input.name == inputs::starts.name && input != inputs::starts) ||
               (input.name == inputs::label_count.name && input != inputs::label_count)) {
      refuse(out, 266) << "the model declares the input '" << input.name
                       << "', and another input of the step has this name; take another one";
    } else if (input.of_step && input != inputs::label_count) {
      refuse(out, 266) << "the input '" << input.name
                       << "' is of a step; a model declares inputs of tokens: leave of_step out";
    } else if (input.holds != element::index && input.holds != element::wide) {
      refuse(out, 266) << "the input '" << input.name
                       << "' holds numbers of the plan's precision; take element::index or element::wide";
    }
  }
}

}  // namespace rankc::detail
