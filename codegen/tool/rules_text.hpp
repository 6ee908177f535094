// SPDX-License-Identifier: Apache-2.0
// The long form of every rule: details that do not fit into a diagnostic's one sentence. The rules are
// checked where they are defined; this is their text only.
#pragma once
#include <span>
#include <string_view>

namespace rankc::tool {

/// `breaks` is a line of a plan, or a JSON line of `rankc schedule`, which begins with a brace.
struct rule_text {
  int id;
  std::string_view title;  // one line: the requirement
  std::string_view says;   // the rule
  std::string_view why;
  std::string_view breaks;  // an example that breaks it
  std::string_view mend;
};

/// All rules by rising id.
std::span<const rule_text> rule_texts();

}  // namespace rankc::tool
