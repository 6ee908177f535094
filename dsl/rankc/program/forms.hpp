// SPDX-License-Identifier: Apache-2.0
// The layers of a plan as they are lowered: of one kind some may repeat in backward what others keep.
#pragma once
#include <rankc/base/recipe.hpp>
#include <rankc/program/kinds_of_stages.hpp>

namespace rankc {

/// A kind of layers, with or without recomputation.
struct layer_form {
  int kind = 0;
  bool recomputes = false;
  constexpr bool operator==(const layer_form&) const = default;
};

/// The forms of a plan's layers: of each kind in order those that occur, the one without recomputation first.
constexpr std::vector<layer_form> forms_of(const auto& p) {
  std::vector<layer_form> forms;
  int number = 0;  // of the next repeated layer
  for (int k = 0; k < static_cast<int>(p.kinds.size()); ++k) {
    bool occurs[]{false, false};
    for (int i = 0; i < p.kinds[k].count; ++i) {
      occurs[p.kinds[k].repeated && p.recipe.recompute.is_of(number)] = true;
      number += p.kinds[k].repeated;
    }
    for (const bool recomputes : {false, true})
      if (occurs[recomputes]) forms.push_back({k, recomputes});
  }
  return forms;
}

/// The forms of each stage's layers, in order.
/// Shapes: (stages), then (layers of the stage), indices of forms_of.
constexpr std::vector<std::vector<int>> forms_of_stages(const auto& p) {
  const std::vector<layer_form> forms = forms_of(p);
  std::vector<std::vector<int>> stages = kinds_of_stages(p);
  int number = 0;
  for (std::vector<int>& layers : stages)
    for (int& k : layers) {
      const layer_form wanted{k, p.kinds[k].repeated && p.recipe.recompute.is_of(number)};
      number += p.kinds[k].repeated;
      k = 0;
      while (!(forms[k] == wanted)) ++k;
    }
  return stages;
}

}  // namespace rankc
