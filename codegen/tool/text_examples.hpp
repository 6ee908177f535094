// SPDX-License-Identifier: Apache-2.0
// Texts as examples.
#pragma once
#include <iosfwd>
#include <optional>

#include "example.hpp"
#include "text_encoder.hpp"
#include "tokens.hpp"

namespace rankc::tool {

/// Calls `visit` with each text of the files, followed by the token `end`. Every token but the first is a
/// label. A text that is longer than a packed sequence becomes several examples. `note` gets a sentence about
/// each file that is not UTF-8.
/// Errors: failure (1) that names the file, and the line of JSON lines.
void visit_texts(const tokens_options&, const text_encoder&, std::optional<int> end,
                 const visit_example& visit, std::ostream& note);

}  // namespace rankc::tool
