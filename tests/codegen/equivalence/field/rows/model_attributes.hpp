// SPDX-License-Identifier: Apache-2.0
// The attributes of the model's ops: lengths of sequences, sizes of heads and of groups, factors, fp8. A
// program's op that takes an operand of one of the model's ops must have the same attributes. The drawn
// elements of the operand, not the program's views, identify the op of the model.
#pragma once
#include "rows.hpp"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace field {

class model_attributes {
 public:
  /// Record an op that runs in the model.
  void note(const row&, const call&);
  /// Whether a program's op has the attributes of the model's op with this operand. True if the model has no
  /// such op.
  bool agree(const row&, const call&) const;

 private:
  /// The index in `all_`; equal attributes share an index.
  std::size_t index_of(const std::vector<double>&);

  static constexpr std::size_t several = -1;  // the model has ops with different attributes on these elements
  std::vector<std::vector<double>> all_;
  std::unordered_map<std::uint64_t, std::size_t> of_elements_;
};

}  // namespace field
