// SPDX-License-Identifier: Apache-2.0
// Small random programs: correct if the ops run one after the other, with random waits. Most race, many do
// not, and the proof must tell which.
#pragma once
#include <rankc/codegen/program.hpp>

namespace rankc::codegen::testing {

program random_program(unsigned seed);

}  // namespace rankc::codegen::testing
