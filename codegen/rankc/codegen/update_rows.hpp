// SPDX-License-Identifier: Apache-2.0
// The ops that update weights. The checks of programs and certificates include no header of the language, so
// they have a table of optimizers; a test compares it with the language's.
#pragma once
#include <rankc/codegen/program.hpp>

#include <algorithm>
#include <string_view>

namespace rankc::codegen {

/// An optimizer of the runtime, and the range of moments that it keeps of each weight.
struct update_row {
  std::string_view name;
  int least_moments, most_moments;
};
inline constexpr update_row update_rows[]{{"adamw", 2, 2}, {"sgd", 0, 1}};

/// The runtime's optimizer with a name; null if there is none.
constexpr const update_row* find_update_row(std::string_view name) {
  const auto* found = std::ranges::find(update_rows, name, &update_row::name);
  return found == std::end(update_rows) ? nullptr : found;
}

/// True if an op updates weights: its row is one of the runtime's optimizers, or it reads the norm of the
/// gradients, which is the last operand of a user's optimizer.
inline bool is_update(const op& o) {
  if (find_update_row(o.row)) return true;
  return o.row != "sum_squares" && !o.views.empty() && o.views.back().port == "norm" &&
         !o.views.back().written;
}

}  // namespace rankc::codegen
