// SPDX-License-Identifier: Apache-2.0
// What steps took beside what was predicted of them.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/program.hpp>

#include <span>
#include <string>
#include <vector>

namespace rankc::runtime {

/// A table, a line each: the step that half of them took longer than, what follows from it, and, of a step
/// that was timed, its actions on average. Empty where nothing is predicted.
/// Units: milliseconds; `times` of one step, or none.
std::vector<std::string> time_table(const description&, std::vector<double> step_ms,
                                    std::span<const traced> times);

}  // namespace rankc::runtime
