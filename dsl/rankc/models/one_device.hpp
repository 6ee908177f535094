// SPDX-License-Identifier: Apache-2.0
// Traces a model as if one device ran the whole batch of a step at once.
#pragma once
#include <rankc/recipe/training.hpp>
#include <rankc/models/trace_layer.hpp>

#include <vector>

namespace rankc {

/// The layer context for one device. Router statistics keep the plan's groups: one per microbatch, or one per
/// microbatch and data-parallel rank if they are local.
constexpr layer_context one_device_context(const auto& model, const training& recipe, int microbatches,
                                           int ranks) {
  const dim tokens{"tokens", recipe.global_batch * recipe.seq};
  const double loss_scale = 1.0 / (static_cast<double>(recipe.global_batch) * recipe.seq);
  return {tokens,
          recipe.global_batch,
          recipe.seq,
          false,
          loss_scale,
          false,
          1,
          1,
          1,
          false,
          1,
          detail::statistics_of(model, tokens.size, tokens.size / microbatches, ranks),
          detail::inputs_of(model, recipe),
          true,
          recipe.token_weights};
}

/// Traces a model's kinds of layers for one device. The plan must be valid.
/// Shapes: kinds (runs), the kind of each run of equal layers; the result (kinds).
constexpr std::vector<trace> trace_on_one_device(const auto& model, const training& recipe, int microbatches,
                                                 int ranks, const std::vector<int>& kinds) {
  const layer_context c = one_device_context(model, recipe, microbatches, ranks);
  type x = detail::first_type(c);
  std::vector<trace> all;
  std::size_t run = 0;
  each_entry(model, [&](const auto& entry, int) {
    const auto kind = static_cast<std::size_t>(kinds[run++]);
    if (kind == all.size()) all.push_back(detail::trace_layer(detail::layer_of(entry), x, c, recipe));
    x = all[kind].values[all[kind].result];
  });
  return all;
}

}  // namespace rankc
