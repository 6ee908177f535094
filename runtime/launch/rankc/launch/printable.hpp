// SPDX-License-Identifier: Apache-2.0
// Names of files, tensors and hosts may hold any bytes; a terminal would obey its control sequences in them.
#pragma once
#include <string>
#include <string_view>

namespace rankc::runtime {

/// A text as one line for a terminal: control characters, line breaks and bytes that are not UTF-8 become
/// \xNN.
std::string printable(std::string_view);

}  // namespace rankc::runtime
