// SPDX-License-Identifier: Apache-2.0
// Families: constants whose names differ only by numbers that loops vary. A family is one array, or a rule
// that computes its values from the numbers.
#pragma once
#include <map>
#include <set>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "loops.hpp"
#include "numbers.hpp"

namespace rankc::codegen {

/// A constant of generated text.
struct declared_constant {
  std::string name, type;    // a member of a struct has a dot before each
  std::string value;         // in the braces of its declaration
  std::string plain;         // its declaration as a single constant, with the line's end
  std::string comment = {};  // behind its declaration
};

/// The type of a name that is declared in the function that uses it. It needs no number in a loop.
inline constexpr std::string_view local_name = "local";

/// The families of a pipeline rank.
class families {
 public:
  /// Takes the numbers that vary in a function.
  void add(const std::vector<rolled>&);
  /// Gives the families names, after all functions.
  void name(const numbered_names&);

  /// The text of a function's body.
  std::string print(const std::vector<rolled>&) const;
  /// The declarations of the quoted texts that vary.
  std::string declare_texts() const;

  /// A constant, or a family with the first and the number of its numbers, for each number that varies.
  struct group {
    std::string name, type;
    std::vector<long> first, count;             // empty: one constant
    std::vector<const declared_constant*> all;  // by number, the last one fastest; null where there is none
    std::vector<std::string> variables = {"i", "j"};  // names in the rule
  };
  std::vector<group> groups_of(const std::vector<declared_constant>&) const;

 private:
  struct text_family {
    std::string name;
    long first = 0, last = 0;
  };
  void add(const rolled&, std::vector<std::pair<long, long>>& ranges);
  void print(const rolled&, std::size_t indent, std::vector<std::string>& variables, std::string& out) const;
  std::string text_of(const pieces&, const std::vector<std::string>& variables) const;
  std::string text_of(const rolled&, std::size_t indent, const std::vector<std::string>& variables) const;
  std::string name_of(const piece&, const std::vector<std::string>& variables) const;
  bool is_varied(const rolled&) const;
  std::string array_of(const piece&) const;
  const std::vector<bool>* varied_in(const piece&) const;

  std::map<std::string, std::vector<bool>> varied_;        // by the form of a name: the numbers that vary
  std::map<std::string, text_family> texts_;               // by pattern
  std::map<std::string, std::set<std::string>> forms_of_;  // forms of names by their array
};

/// "numbered<T, 0, 32>": the type of a family's array.
std::string type_of_array(const families::group&);
/// The rule that computes a family's values; empty if there is none. `capture`: of the lambda around it.
std::string rule_text(const families::group&, std::string_view capture = "");
/// The value of a family's constants in terms of their numbers; none if no rule gives it.
std::optional<std::string> value_rule(const families::group&);
/// A rule on lines of at most 100 columns, if possible.
std::string broken_rule(std::string_view);
/// All values of a family, in braces.
std::string values_text(const families::group&);
/// The declarations of constants, single ones and families.
std::string declare(const std::vector<declared_constant>&, const families&);

}  // namespace rankc::codegen
