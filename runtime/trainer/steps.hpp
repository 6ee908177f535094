// SPDX-License-Identifier: Apache-2.0
// Parts that all step loops share.
#pragma once
#include <rankc/launch/watchdog.hpp>
#include <rankc/trainer/command_line.hpp>
#include <rankc/trainer/run_state.hpp>

#include <optional>

namespace rankc::runtime {

/// The input of a run's next step.
step_input next_input(const run_state&);

/// A watchdog for this process; empty if a coordinator watches the run.
std::optional<watchdog> watch_steps(engine&, const options&);

}  // namespace rankc::runtime
