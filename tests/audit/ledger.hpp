// SPDX-License-Identifier: Apache-2.0
// An account that is made of rows of formulas.
#pragma once
#include "account.hpp"
#include "formulas.hpp"

namespace audit {

/// What the formulas need to know of a program's numbers.
struct number_types {
  std::string real, wide;  // of activations and weights as layers read them; of sums, statistics and the loss
};

/// What is said of a row for a rank.
struct with {
  std::string axis = {}, phase = {}, kind = {}, type = {};  // else the row's
  variables given = {};
  fraction tensors = 1;  // that go together
};

class ledger {
 public:
  ledger(const std::vector<formula>& rows, const number_types& types, variables of_all)
      : rows_(rows), types_(types), of_all_(std::move(of_all)) {}

  /// The row of a number, so many times.
  /// Errors: std::logic_error where it gives a part of an element.
  void add(int id, fraction times = 1, const with& = {});

  const account& all() const { return all_; }

 private:
  const std::vector<formula>& rows_;
  const number_types& types_;
  const variables of_all_;
  account all_;
};

}  // namespace audit
