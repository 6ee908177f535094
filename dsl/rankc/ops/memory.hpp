// SPDX-License-Identifier: Apache-2.0
// Ops that only lowering adds. Their kernels are templates over the type of the operands.
#pragma once
#include <rankc/trace/op_row.hpp>

namespace rankc::ops {
/// Zeroes a parameter's gradient before the first accumulation of a step.
inline constexpr op_row clear{.name = "clear", .ports = {sum("y", "elements")}, .sizes = "elements"};
/// Copies a tensor.
inline constexpr op_row copy{
    .name = "copy", .ports = {out("y", "tokens width"), in("x", "tokens width")}, .sizes = "tokens*width"};

}  // namespace rankc::ops
