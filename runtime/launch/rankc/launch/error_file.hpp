// SPDX-License-Identifier: Apache-2.0
// What torchrun shows of a rank that has failed: a file that it names in TORCHELASTIC_ERROR_FILE.
#pragma once
#include <rankc/launch/environment.hpp>

#include <cstdint>
#include <string>

namespace rankc::runtime {

/// Write the text to TORCHELASTIC_ERROR_FILE if that is set. Errors of writing are ignored. torchrun takes
/// the report with the earliest second for the cause, so a victim's report gets one second more, and does not
/// replace another rank's.
void write_error_file(const environment&, const std::string& text, bool is_victim);

}  // namespace rankc::runtime
