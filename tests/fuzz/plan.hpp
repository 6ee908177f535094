// SPDX-License-Identifier: Apache-2.0
// All parts of a drawn plan, as values. A seed and an index determine it.
#pragma once
#include "model.hpp"
#include "schedules.hpp"

#include <rankc/stages/plan_data.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fuzz {

struct plan {
  std::uint64_t seed = 0, index = 0;
  // fp8 linear layers, on layouts whose ranks round the same tensors as one rank.
  bool rounded = false;
  fuzz::model model;
  training recipe{};
  int one_rank_microbatches = 1;  // microbatches of the one-rank program
  parallel_dims dims{};
  schedule_choice schedule{};
  std::vector<int> stage_layers{};
};

/// Plans of one model are consecutive, so that they share its one-rank program. Each rounded plan has a
/// separate one with microbatches of the same size.
inline constexpr std::uint64_t plans_per_model = 2;
inline std::uint64_t number_of_one_rank(const plan& p) {
  return p.rounded ? p.index : p.index / plans_per_model;
}

plan draw_plan(std::uint64_t seed, std::uint64_t index, bool rounded = false);

/// Draw the parts of a plan: the model with its recipe; then its trainable parameters; then its layout.
void draw_model(plan&);
void draw_tuning(plan&);
void draw_layout(plan&);

/// The same model and recipe on one rank.
plan on_one_rank(const plan&);

/// The plan as the generator takes it, or with the reason why it is refused.
plan_data make(const plan&, const std::string& name);

/// The plan as text similar to a declaration.
std::string describe(const plan&);

}  // namespace fuzz
