// SPDX-License-Identifier: Apache-2.0
// The data that a resumed run may hold out: none that it has trained on.
#pragma once
#include "known_data.hpp"
#include <rankc/trainer/command_line.hpp>
#include <rankc/trainer/resume.hpp>

#include <optional>
#include <string>
#include <vector>

namespace rankc::runtime {

/// A source of a run that goes on.
struct resumed_source {
  const opened_source& source;
  std::vector<file_mark> files;
  const known_source* known = nullptr;  // the source that goes on in it; nullptr: it begins
};

/// The share that a state holds out of the data it trains on.
double held_share(const run_state&);

/// Set the order of each source and the share that is held out of it. A share that the checkpoint names and
/// that cannot be held out costs a note.
/// Errors: failure (2) for a share that the options name and that cannot be held out.
void hold_out(const std::vector<resumed_source>&, const known_data&, const run_state& saved,
              const run_state& now, const options&, planned_data&);

}  // namespace rankc::runtime
