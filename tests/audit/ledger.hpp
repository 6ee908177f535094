// SPDX-License-Identifier: Apache-2.0
// An account built from rows of formulas.
#pragma once
#include "account.hpp"
#include "formulas.hpp"

namespace audit {

/// The element types that the formulas call by kind.
struct number_types {
  std::string real, wide;  // activations and weights in layers; sums, statistics and the loss
};

/// Values with which this program replaces those of a formula's row. Empty: the row's value stays.
struct with {
  std::string axis = {}, phase = {}, kind = {}, type = {};
  variables given = {};
  fraction tensors = 1;  // tensors of one call
};

class ledger {
 public:
  ledger(const std::vector<formula>& rows, const number_types& types, variables of_all)
      : rows_(rows), types_(types), of_all_(std::move(of_all)) {}

  /// Add `times` calls of the row with this number.
  /// Errors: std::logic_error if the row gives a fraction of an element.
  void add(int id, fraction times = 1, const with& = {});

  const account& all() const { return all_; }

 private:
  const std::vector<formula>& rows_;
  const number_types& types_;
  const variables of_all_;
  account all_;
};

}  // namespace audit
