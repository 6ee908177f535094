// SPDX-License-Identifier: Apache-2.0
// What the operands of a program's linear layers are rounded to.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

/// The products of linear layers in forward of layers of a kind, and how many of them are of eight bits.
struct rounded_linears {
  std::string layer;
  linear_precision by = fp8;
  int products = 0, in_fp8 = 0;
};
/// The kinds of layers that have products of eight bits.
std::vector<rounded_linears> linears_in_fp8(const lowered&);

/// "linears: 4 of 4 products of block in fp8"; nothing where none are.
std::string linears_text(const lowered&);

}  // namespace rankc::codegen
