// SPDX-License-Identifier: Apache-2.0
// The number format of the operands of a program's linear layers.
#pragma once
#include <rankc/codegen/lowered.hpp>

#include <string>
#include <vector>

namespace rankc::codegen {

/// The GEMMs of linear layers in the forward of a kind of layer, and how many of them run in fp8.
struct rounded_linears {
  std::string layer;
  linear_precision by = fp8;
  int products = 0, in_fp8 = 0;
};
/// The kinds of layers that have GEMMs in fp8.
std::vector<rounded_linears> linears_in_fp8(const lowered&);

/// "linears: 4 of 4 products of block in fp8"; empty if no GEMM is in fp8.
std::string linears_text(const lowered&);

}  // namespace rankc::codegen
