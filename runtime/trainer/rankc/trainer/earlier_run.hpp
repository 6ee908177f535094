// SPDX-License-Identifier: Apache-2.0
// A folder of --save that has checkpoints already. Checkpoints of two runs do not share a folder.
#pragma once
#include <rankc/trainer/beginning.hpp>

#include <optional>
#include <string>

namespace rankc::runtime {

/// Compare the run that begins with the run whose checkpoints are in the folder of --save. A run may go on in
/// the folder that it is loaded from. The same command may start again there, as a scheduler requeues it.
/// Returns: a note where the same run starts again.
/// Errors: failure (2) that names the other run; failure (65) where the folder cannot be read.
std::optional<std::string> check_earlier_run(const options&, const beginning&, const description&);

}  // namespace rankc::runtime
