// SPDX-License-Identifier: Apache-2.0
// Regular expressions of tokenizer.json, which are Oniguruma's in Ruby's syntax, as expressions of PCRE2.
#pragma once
#include <string>
#include <string_view>

namespace rankc::runtime {

/// The expression of PCRE2 that matches the same texts. It needs PCRE2_UTF and PCRE2_UCP.
/// Errors: std::invalid_argument for a construct that the two libraries may read in two ways. It names the
/// construct and its byte.
std::string pcre2_expression(std::string_view expression);

/// An expression of PCRE2 that matches a text itself.
std::string pcre2_literal(std::string_view text);

}  // namespace rankc::runtime
