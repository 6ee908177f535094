// SPDX-License-Identifier: Apache-2.0
// The learning rate of each step, from the plan's recipe or from `--lr-schedule`.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace rankc::runtime {

/// The pieces of a recipe's schedule. If it has no pieces, warmup_steps, decay_steps and min_lr give a
/// warm-up and a cosine.
lr_schedule schedule_of(const recipe&);

/// Learning rate of step `step`, counted from 1.
double learning_rate(const recipe&, std::int64_t step);

/// The highest rate at the end of a schedule's pieces; 0 for a schedule without pieces.
double highest_end(const recipe&);

/// Replaces the schedule of a recipe by `constant`, `cosine[:WARMUP[:DECAY_STEPS[:MIN_LR]]]`,
/// `wsd:WARMUP:STABLE:DECAY[:MIN_LR]`, or consecutive pieces:
/// `warmup:STEPS,constant:STEPS,linear:STEPS:LR,cosine:STEPS:LR`. Values that a single `cosine` omits stay
/// the recipe's; a recipe without decay decays until `last_step`.
/// Errors: failure (2) for any other text or value.
void set_schedule(recipe&, std::string_view text, std::int64_t last_step);

/// The command-line text of a schedule's pieces.
std::string schedule_text(const lr_schedule&);

/// Reads a text that schedule_text or a user has written; an empty text gives an empty schedule.
lr_schedule read_schedule(std::string_view text);

}  // namespace rankc::runtime
