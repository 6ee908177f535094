// SPDX-License-Identifier: Apache-2.0
// `describe --measured`: the times of a step's calls.
#pragma once
#include <rankc/trainer/trainer.hpp>

namespace rankc::runtime {

/// Runs some steps and prints the call account of the first rank of each pipeline coordinate.
/// Errors: failure, with the exit code of the program; failure (1) if the program has only forward passes.
void measure(const description&, const install_engine& install, const options&);

}  // namespace rankc::runtime
