// SPDX-License-Identifier: Apache-2.0
// Checks a certificate. It shares neither code nor method with the proof: it searches for nothing, follows
// the order that the certificate gives, and knows the program from the JSON alone. What it has to believe the
// file says under "trusted".
#pragma once
#include <string>

namespace rankc::codegen {

/// Check a certificate; empty: every claim of `prove` holds. Otherwise one sentence, with its id,
/// that says what is wrong.
/// Errors: never throws; text that is no certificate is answered with a sentence too.
std::string verify(const std::string& json_text);

}  // namespace rankc::codegen
