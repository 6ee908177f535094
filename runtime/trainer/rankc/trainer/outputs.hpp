// SPDX-License-Identifier: Apache-2.0
// Refuses, before training, to overwrite files that are not the run's own.
#pragma once
#include <rankc/trainer/command_line.hpp>
#include <rankc/trainer/run_state.hpp>

namespace rankc::runtime {

/// Errors: failure (2) if --metrics or --trace names an existing file of another kind, or both name one file.
void refuse_other_files(const options&);

/// Errors: failure (2) if --metrics or --trace names a file that the run reads.
void refuse_inputs(const options&, const run_state&);

}  // namespace rankc::runtime
