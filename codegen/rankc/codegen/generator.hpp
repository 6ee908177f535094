// SPDX-License-Identifier: Apache-2.0
// The command line of a plan's generator: check, emit, describe, timeline, certificate.
#pragma once
#include <rankc/plan/make_plan.hpp>

namespace rankc::codegen {

/// Runs one command. Returns the exit code: 0 done, 1 the plan breaks rules, 2 usage.
int generator_main(const plan_data&, int argc, char** argv);

}  // namespace rankc::codegen
