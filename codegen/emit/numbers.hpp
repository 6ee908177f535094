// SPDX-License-Identifier: Apache-2.0
// The numbers in generated text. Statements that differ only by their numbers become a loop, and constants
// whose names differ only by a number become an array.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rankc::codegen {

/// A number in a text: the sum of a constant and of a multiple of each enclosing loop's variable.
struct number {
  long constant = 0;
  long cycle = 0;                  // unless 0, the sum counts modulo this
  std::vector<long> factors = {};  // by the depth of the loop
  bool varies() const;
};

/// A text, cut where its numbers stand. The parts of a piece surround its numbers.
struct piece {
  enum class kind { code, integer, name, quoted, comment };
  kind is = kind::code;
  std::vector<std::string> parts = {};
  std::vector<number> numbers = {};
  std::string type = {};  // the type of a name
  bool varies() const;
};
using pieces = std::vector<piece>;

/// The names whose numbers may vary.
struct numbered_names {
  /// The type of each name's constant. A struct's member has a dot before its name.
  std::map<std::string, std::string, std::less<>> types = {};
  /// The lengths of arrays that are used in turn: an index behind "slots[" counts modulo the length.
  std::map<std::string, long> turns = {};
};

/// Cuts a text.
pieces cut(std::string_view text, const numbered_names&);
/// The text without its numbers. Equal forms differ at most by numbers.
std::string form_of(const pieces&);
/// The numbers of a text, in order.
std::vector<number> numbers_of(const pieces&);
/// "weights of layers.#": the parts of a piece, with '#' in place of the numbers that vary.
std::string pattern_of(const piece&);

/// "2 * m + i + 3": a number in terms of the loops' variables.
std::string text_of(const number&, const std::vector<std::string>& variables);

}  // namespace rankc::codegen
