// SPDX-License-Identifier: Apache-2.0
// Digit separators in the numbers of generated C++: 6416896 becomes 6'416'896.
#pragma once
#include <string>
#include <string_view>

namespace rankc::codegen {

/// The text with separators in decimal integers of five digits or more, also in comments. Strings, names,
/// hexadecimal numbers and numbers with a point or an exponent stay as they are.
std::string with_separators(std::string_view code);

}  // namespace rankc::codegen
