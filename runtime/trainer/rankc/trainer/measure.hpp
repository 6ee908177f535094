// SPDX-License-Identifier: Apache-2.0
// `describe --measured`: where the time of a step goes.
#pragma once
#include <rankc/trainer/trainer.hpp>

namespace rankc::runtime {

/// Take some steps and print, for the first rank of each pipeline coordinate, what its calls took.
/// Errors: failure, with the exit code of the program; failure (1) where the program has forwards alone.
void measure(const description&, const install_engine& install, const options&);

}  // namespace rankc::runtime
