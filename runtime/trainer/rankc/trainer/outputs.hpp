// SPDX-License-Identifier: Apache-2.0
// The files that a training run may not write over, asked before anything is trained.
#pragma once
#include <rankc/trainer/command_line.hpp>
#include <rankc/trainer/run_state.hpp>

namespace rankc::runtime {

/// Errors: failure (2) where --metrics or --trace names a file of something else, or both name one file.
void refuse_other_files(const options&);

/// Errors: failure (2) where --metrics or --trace names a file that the run reads.
void refuse_inputs(const options&, const run_state&);

}  // namespace rankc::runtime
