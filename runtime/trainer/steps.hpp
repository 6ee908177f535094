// SPDX-License-Identifier: Apache-2.0
// What every loop of steps needs.
#pragma once
#include <rankc/launch/watchdog.hpp>
#include <rankc/trainer/command_line.hpp>
#include <rankc/trainer/run_state.hpp>

#include <optional>

namespace rankc::runtime {

/// What the next step of a run is given.
step_input next_input(const run_state&);

/// A watchdog, where no coordinator looks on.
std::optional<watchdog> watch_steps(engine&, const options&);

}  // namespace rankc::runtime
