// SPDX-License-Identifier: Apache-2.0
// The learning rate of each step, as the plan's recipe or `--lr-schedule` says.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace rankc::runtime {

/// The pieces of a recipe's schedule; of warmup_steps, decay_steps and min_lr a warm-up and a cosine.
lr_schedule schedule_of(const recipe&);

/// Learning rate of step `step`, counted from 1.
double learning_rate(const recipe&, std::int64_t step);

/// The highest rate besides lr that a schedule leads to; 0 where it leads to none.
double highest_end(const recipe&);

/// Replace the schedule of a recipe by `constant`, `cosine[:WARMUP[:DECAY_STEPS[:MIN_LR]]]`,
/// `wsd:WARMUP:STABLE:DECAY[:MIN_LR]`, or pieces, one after the other:
/// `warmup:STEPS,constant:STEPS,linear:STEPS:LR,cosine:STEPS:LR`. What a `cosine` alone leaves out stays as
/// the recipe has it; a recipe without decay decays until `last_step`.
/// Errors: failure (2) for any other text or value.
void set_schedule(recipe&, std::string_view text, std::int64_t last_step);

/// Pieces as the command line spells them.
std::string schedule_text(const lr_schedule&);

/// Read what schedule_text has written, or a user; nothing where it is none.
lr_schedule read_schedule(std::string_view text);

}  // namespace rankc::runtime
