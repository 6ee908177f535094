// SPDX-License-Identifier: Apache-2.0
// The facts of all rows that a program may call. Those of rankc's rows are in the table; those of a user's
// rows come with the model. A user's row is an uninterpreted function of its operands.
#pragma once
#include <rankc/codegen/specification.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "facts.hpp"

namespace rankc::codegen::algebra {

/// Whether an op of rankc's has the name, so that no row of a user's may.
bool is_taken(std::string_view row);

class fact_table {
 public:
  /// Errors: refusal where the facts of a user's row cannot be read, or are no functions of its operands, or
  /// where two rows have one name; the optimizer is one of these rows.
  explicit fact_table(const specification&);

  const fact& operator[](int row) const { return all()[static_cast<std::size_t>(row)]; }
  /// The index of a row.
  /// Errors: unknown_row.
  int find(std::string_view row) const;
  const fact& of(std::string_view row) const { return (*this)[find(row)]; }

 private:
  const std::vector<fact>& all() const { return with_users_.empty() ? facts() : with_users_; }

  std::vector<fact> with_users_;                             // empty: the user has no rows
  std::map<std::string, std::string, std::less<>> unknown_;  // of rows without facts: why
};

}  // namespace rankc::codegen::algebra
