// SPDX-License-Identifier: Apache-2.0
// Ops that lowering adds. The kernels' type is that of their operands.
#pragma once
#include <rankc/trace/op_row.hpp>

namespace rankc::ops {
/// A parameter's gradient before its first sum of a step.
inline constexpr op_row clear{.name = "clear", .ports = {sum("y", "elements")}, .sizes = "elements"};
inline constexpr op_row copy{
    .name = "copy", .ports = {out("y", "tokens width"), in("x", "tokens width")}, .sizes = "tokens*width"};

}  // namespace rankc::ops
