// SPDX-License-Identifier: Apache-2.0
// Checks a --save folder that already has checkpoints. Two runs may not save into one folder.
#pragma once
#include <rankc/trainer/beginning.hpp>

#include <optional>
#include <string>

namespace rankc::runtime {

/// Compares the new run with the run whose checkpoints are in the --save folder. A run may continue in the
/// folder that it is loaded from. The same command may start again there, as when a scheduler requeues it.
/// Returns: a note if the same run starts again.
/// Errors: failure (2) that names the other run; failure (65) if the folder cannot be read.
std::optional<std::string> check_earlier_run(const options&, const beginning&, const description&);

}  // namespace rankc::runtime
