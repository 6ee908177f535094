// SPDX-License-Identifier: Apache-2.0
// What a kernel makes of what it is given, by the facts of its row. Operands may be of several tensors side
// by side: the op is then that of each cell, a range of each axis in which every operand is of one tensor.
#pragma once
#include <vector>

#include "contents.hpp"
#include "facts.hpp"
#include "model.hpp"

namespace rankc::codegen::algebra {

class cell;

class transfer {
 public:
  transfer(const model& m, workspace& space) : model_(m), space_(space) {}

  /// Fill in the tiles of a row's results. `ports` are in the order of the row's; results have their shapes.
  /// Errors: refusal, where facts of the row do not hold of the operands, or a result is none of the model's.
  void apply(const fact&, std::vector<operand>& ports, const attributes&);

 private:
  void each_cell(const fact&, std::vector<operand>& ports, cell&, const attributes&);
  void put(const fact&, const equation&, std::vector<operand>& ports, const cell&, holding made);
  void call(const equation&, std::vector<operand>& ports, const attributes&);
  void multiply(const fact&, const equation&, std::vector<operand>& ports, const attributes&);

  const model& model_;
  workspace& space_;
};

}  // namespace rankc::codegen::algebra
