// SPDX-License-Identifier: Apache-2.0
// Notes on a resumed run whose plan was edited, and on steps with a learning rate of 0.
#pragma once
#include <rankc/trainer/run_state.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rankc::runtime {

/// Notes on values that differ between the checkpoint's plan and the current plan. `saved` is the state of
/// the checkpoint, `now` the recipe after the options.
std::vector<std::string> recipe_changes(const description& plan, const run_state& saved, const recipe& now);

/// A note if the learning rate is 0 in the last steps of a run, or in its only step, although its peak is not
/// 0.
std::optional<std::string> steps_without_rate(const recipe&, std::int64_t first, std::int64_t last);

}  // namespace rankc::runtime
