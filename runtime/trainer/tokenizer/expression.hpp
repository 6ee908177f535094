// SPDX-License-Identifier: Apache-2.0
// Translation of regular expressions in tokenizer.json (Oniguruma, Ruby's syntax) into PCRE2's.
#pragma once
#include <string>
#include <string_view>

namespace rankc::runtime {

/// The PCRE2 expression that matches the same texts. It needs PCRE2_UTF and PCRE2_UCP.
/// Errors: std::invalid_argument, with the construct and its byte, for a construct that the two libraries may
/// interpret differently.
std::string pcre2_expression(std::string_view expression);

/// A PCRE2 expression that matches a text literally.
std::string pcre2_literal(std::string_view text);

}  // namespace rankc::runtime
