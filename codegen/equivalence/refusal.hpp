// SPDX-License-Identifier: Apache-2.0
// The reason for which a program is not shown to compute the model.
#pragma once
#include <rankc/runtime/failure.hpp>

#include <string>
#include <string_view>
#include <type_traits>

namespace rankc::codegen::algebra {

/// The refusal of a program that is not shown to compute the model. `rankc verify` then exits with 1.
struct refusal : runtime::failure {
  template <class... Arguments>
  explicit refusal(runtime::sentence<std::type_identity_t<Arguments>...> about, const Arguments&... values)
      : failure(1, about, values...) {}

  /// The same sentence with the op's place in front: "rank 3, 1B0: layers.2: linear".
  refusal at(const std::string& place) const { return refusal(reported(code, place + ": " + what()), *this); }

 private:
  refusal(const failure& placed, const refusal& why) : failure(placed) {
    id = why.id;
    arguments = why.arguments;
  }
};

/// A row that the table of facts does not have.
struct unknown_row : refusal {
  explicit unknown_row(std::string_view row)
      : refusal("RC7635: the table of facts has no row {}, so the program is not compared with the model",
                row) {}
  unknown_row(std::string_view row, const std::string& why)
      : refusal(
            "RC7745: what {} computes does not follow from its op_row, so the program is not compared with "
            "the model: {}",
            row, why) {}
};

}  // namespace rankc::codegen::algebra
