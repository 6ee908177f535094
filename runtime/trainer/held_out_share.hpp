// SPDX-License-Identifier: Apache-2.0
// The data that a resumed run may hold out: data that it has never trained on.
#pragma once
#include "known_data.hpp"
#include <rankc/trainer/command_line.hpp>
#include <rankc/trainer/resume.hpp>

#include <optional>
#include <string>
#include <vector>

namespace rankc::runtime {

/// A source of a resumed run.
struct resumed_source {
  const opened_source& source;
  std::vector<file_mark> files;
  const known_source* known =
      nullptr;  // the source of the checkpoint that continues here; nullptr: a new source
};

/// The share that a state holds out of its training data.
double held_share(const run_state&);

/// Sets the order of each source and its held-out share. If the share came from the checkpoint and can no
/// longer be held out, the plan gets a note.
/// Errors: failure (2) if the share came from the options and cannot be held out.
void hold_out(const std::vector<resumed_source>&, const known_data&, const run_state& saved,
              const run_state& now, const options&, planned_data&);

}  // namespace rankc::runtime
