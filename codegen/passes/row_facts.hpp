// SPDX-License-Identifier: Apache-2.0
// A user's row in the words of the table of facts: its axes from the symbols of its ports, what it sums and
// in which operands it is linear from its typing rule.
#pragma once
#include <rankc/codegen/specification.hpp>
#include <rankc/trace/trace.hpp>

#include <map>
#include <string>
#include <string_view>

namespace rankc::codegen {

/// Letters for the symbols of a user's rows. The same symbol has the same letter in every row.
class alphabet {
 public:
  /// Errors: undeclared where no letter is left.
  char letter_of(std::string_view symbol);

 private:
  std::map<std::string, char, std::less<>> letters_;
};

/// The facts of an op's row but for its gradients.
/// Errors: undeclared.
specification::row_facts row_facts_of(const trace&, const rankc::op&, alphabet&);

}  // namespace rankc::codegen
