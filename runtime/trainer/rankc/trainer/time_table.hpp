// SPDX-License-Identifier: Apache-2.0
// Measured step times compared with the cost model's predictions.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/program.hpp>

#include <span>
#include <string>
#include <vector>

namespace rankc::runtime {

/// A table with a line each for the median step, the rates that follow from it, and the average of each
/// action in a timed step. Empty if the program has no prediction.
/// Units: milliseconds; `times`: the calls of one step, or empty.
std::vector<std::string> time_table(const description&, std::vector<double> step_ms,
                                    std::span<const traced> times);

}  // namespace rankc::runtime
