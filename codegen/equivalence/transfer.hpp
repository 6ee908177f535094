// SPDX-License-Identifier: Apache-2.0
// Computes the results of a kernel by the facts of its row. An operand may consist of several tensors side by
// side. The op is then applied to one cell at a time: a range of each axis in which every operand comes from
// one tensor.
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

  /// Fills in the tiles of a row's results. `ports` are in the order of the row's ports; results have their
  /// shapes.
  /// Errors: refusal where facts of the row do not hold for the operands, or the model does not have a
  /// result.
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
