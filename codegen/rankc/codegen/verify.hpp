// SPDX-License-Identifier: Apache-2.0
// Checks a certificate. It shares neither code nor method with the proof. It does not search: it follows the
// order that the certificate gives, and knows the program from the JSON alone. The file lists its assumptions
// under "trusted".
#pragma once
#include <string>

namespace rankc::codegen {

/// Checks a certificate. An empty result means that every claim of `prove` holds. Otherwise the result is one
/// sentence, with its id, that says what is wrong.
/// Errors: never throws; a text that is not a certificate is answered with a sentence too.
std::string verify(const std::string& json_text);

}  // namespace rankc::codegen
