// SPDX-License-Identifier: Apache-2.0
// The file named by TORCHELASTIC_ERROR_FILE, from which torchrun reports a failed rank.
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
