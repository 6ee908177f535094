// SPDX-License-Identifier: Apache-2.0
// Unicode Normalization Form C (NFC).
#pragma once
#include <string>
#include <string_view>

namespace rankc::runtime {

/// The NFC of valid UTF-8.
std::string normal_form_c(std::string_view text);

}  // namespace rankc::runtime
