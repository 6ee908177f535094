// SPDX-License-Identifier: Apache-2.0
// What calls of generated text are called: the names of their types.
#pragma once
#include <string>
#include <string_view>

namespace rankc::runtime {

/// A text of the compiler in which the type of a call follows "Call = ".
template <class Call>
[[gnu::cold]] const char* type_text() {
  return __PRETTY_FUNCTION__;
}

/// "linear_dw" of "... Call = plan::linear_dw<float, 128, 512>; ..."
inline std::string word_of(std::string_view type) {
  type = type.substr(type.find("Call = ") + 7);
  type = type.substr(0, type.find_first_of("<;]"));
  const std::size_t colons = type.rfind("::");
  return std::string(colons == std::string_view::npos ? type : type.substr(colons + 2));
}

}  // namespace rankc::runtime
