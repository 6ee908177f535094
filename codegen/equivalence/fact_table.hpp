// SPDX-License-Identifier: Apache-2.0
// The facts of all rows that a program may call. The table has rankc's rows; the model brings the rows of a
// user. A user's row is an uninterpreted function of its operands.
#pragma once
#include <rankc/codegen/specification.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "facts.hpp"

namespace rankc::codegen::algebra {

/// Whether rankc has an op of this name, so that a user's row may not take it.
bool is_taken(std::string_view row);

class fact_table {
 public:
  /// Errors: refusal where the facts of a user's row cannot be read or do not make it a function of its
  /// operands, or two rows have one name. The optimizer counts as a row.
  explicit fact_table(const specification&);

  const fact& operator[](int row) const { return all()[static_cast<std::size_t>(row)]; }
  /// The index of a row.
  /// Errors: unknown_row.
  int find(std::string_view row) const;
  const fact& of(std::string_view row) const { return (*this)[find(row)]; }

 private:
  const std::vector<fact>& all() const { return with_users_.empty() ? facts() : with_users_; }

  std::vector<fact> with_users_;                             // empty: the user has no rows
  std::map<std::string, std::string, std::less<>> unknown_;  // the reason, by row without facts
};

}  // namespace rankc::codegen::algebra
