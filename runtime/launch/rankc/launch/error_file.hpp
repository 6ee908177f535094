// SPDX-License-Identifier: Apache-2.0
// What torchrun shows of a rank that has failed: a file that it names in TORCHELASTIC_ERROR_FILE.
#pragma once
#include <rankc/launch/environment.hpp>

#include <cstdint>
#include <string>

namespace rankc::runtime {

/// Write the text, if the variable is set; what cannot be written is left out. torchrun takes the earliest
/// second for the cause, so that a victim's counts one more, and does not take the place of another's.
void write_error_file(const environment&, const std::string& text, bool is_victim);

}  // namespace rankc::runtime
