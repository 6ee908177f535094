// SPDX-License-Identifier: Apache-2.0
// The attributes that the model's ops take: lengths of sequences, sizes of heads and of groups, factors, fp8.
// A program's op that takes an operand of one of the model's ops must take the same attributes. The elements
// of the operand, which are drawn, tell which op of the model that is; the program's views do not.
#pragma once
#include "rows.hpp"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace field {

class model_attributes {
 public:
  /// An op of the model that runs.
  void note(const row&, const call&);
  /// Whether a program's op takes the attributes that the model's op of this operand takes. True where the
  /// model has no op of it.
  bool agree(const row&, const call&) const;

 private:
  /// The index in `all_`; the same attributes have one index.
  std::size_t index_of(const std::vector<double>&);

  static constexpr std::size_t several = -1;  // Ops with different attributes take the element.
  std::vector<std::vector<double>> all_;
  std::unordered_map<std::uint64_t, std::size_t> of_elements_;
};

}  // namespace field
