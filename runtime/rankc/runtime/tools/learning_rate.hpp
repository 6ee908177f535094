// SPDX-License-Identifier: Apache-2.0
// The learning rate of each step: constant, or linear warm-up and then a cosine to a floor, as the plan's
// recipe or `--lr-schedule` says.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstdint>
#include <string_view>

namespace rankc::runtime {

/// Learning rate of step `step`, counted from 1: lr step / warmup_steps up to and including step
/// warmup_steps, then over decay_steps steps a half cosine from lr to min_lr, then min_lr. decay_steps 0: lr
/// after warm-up. Source: SGDR (Loshchilov and Hutter 2017), one period.
double learning_rate(const recipe&, std::int64_t step);

/// Replace the schedule of a recipe by `constant` or `cosine[:WARMUP[:DECAY_STEPS[:MIN_LR]]]`. What `cosine`
/// leaves out stays as the recipe has it; a recipe without decay decays until `last_step`.
/// Errors: failure (2) for any other text or value.
void set_schedule(recipe&, std::string_view text, std::int64_t last_step);

}  // namespace rankc::runtime
