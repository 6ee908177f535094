// SPDX-License-Identifier: Apache-2.0
// The long form of every rule: what a diagnostic's one sentence has no room for. The rules themselves are
// checked where they are written; here is only text.
#pragma once
#include <span>
#include <string_view>

namespace rankc::tool {

/// `breaks` is a line of a plan, or a JSON line of `rankc schedule` (its sort is told by a leading brace).
struct rule_text {
  int id;
  std::string_view title;  // one line: what must hold
  std::string_view says;   // the rule
  std::string_view why;
  std::string_view breaks;  // an example that breaks it
  std::string_view mend;
};

/// All rules by rising id.
std::span<const rule_text> rule_texts();

}  // namespace rankc::tool
