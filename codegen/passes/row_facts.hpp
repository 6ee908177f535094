// SPDX-License-Identifier: Apache-2.0
// Writes a user's row in the grammar of the table of facts. The symbols of its ports give the axes. Its
// typing rule gives the axes that it sums over and the operands in which it is linear.
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
  /// Errors: undeclared if no letter is left.
  char letter_of(std::string_view symbol);

 private:
  std::map<std::string, char, std::less<>> letters_;
};

/// The facts of an op's row, without its gradients.
/// Errors: undeclared.
specification::row_facts row_facts_of(const trace&, const rankc::op&, alphabet&);

}  // namespace rankc::codegen
