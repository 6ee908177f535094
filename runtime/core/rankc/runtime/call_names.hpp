// SPDX-License-Identifier: Apache-2.0
// The names of the calls in generated text. A call's name is the name of its type.
#pragma once
#include <string>
#include <string_view>

namespace rankc::runtime {

/// A text from the compiler in which the type of a call follows "Call = ".
template <class Call>
[[gnu::always_inline]] inline const char* type_text() {
  return __PRETTY_FUNCTION__;
}

/// The call's name in that text: "linear_dw" in "... Call = plan::linear_dw<float, 128, 512>; ...".
constexpr std::string_view word_in(std::string_view type) {
  type = type.substr(type.find("Call = ") + 7);
  type = type.substr(0, type.find_first_of("<;]"));
  const std::size_t colons = type.rfind("::");
  return colons == std::string_view::npos ? type : type.substr(colons + 2);
}
inline std::string word_of(std::string_view type) { return std::string(word_in(type)); }

}  // namespace rankc::runtime
