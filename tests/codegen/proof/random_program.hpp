// SPDX-License-Identifier: Apache-2.0
// Small programs of no meaning: right if the ops ran one after the other, with waits left to chance. Most
// race, a good share does not, and the proof must tell which.
#pragma once
#include <rankc/codegen/program.hpp>

namespace rankc::codegen::testing {

program random_program(unsigned seed);

}  // namespace rankc::codegen::testing
