// SPDX-License-Identifier: Apache-2.0
// GEMMs of rows with the weights of several experts (grouped GEMM). Only the device knows the number of rows
// of each expert. A segment is a range of rows of one expert. Segment s belongs to expert s % experts, so an
// expert may have several segments. Operand types and rules are those of kernels.hpp. Every sum has a fixed
// order. In bf16, with sizes that are multiples of 64, Hopper's tensor cores run them at about the speed of a
// dense GEMM. All other cases use plain kernels.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

namespace rankc::runtime::cuda {

/// For the rows r of each expert e: y[r] = x[r] w[e]^T, and dx[r] = dy[r] w[e]. Rows outside all segments are
/// unchanged.
/// Shapes: x, dx (rows, in), y, dy (rows, out), w (experts, out, in); offsets int32 (2, segments): the first
/// row of each segment, then the row after its last. All offsets are at most `rows`, and segments do not
/// overlap.
template <class T>
void grouped_linear(const lane&, at y, at x, at w, at offsets, int rows, int in, int out, int segments,
                    int experts);
template <class T>
void grouped_linear_dx(const lane&, at dx, at dy, at w, at offsets, int rows, int in, int out, int segments,
                       int experts);

/// y[r] = residual[r] + x[r] w[e]^T, where y may be residual; and y[r] = x[r] w[e]^T + x2[r] w2[e]^T.
/// Shapes: as above, residual (rows, out), x2 and w2 as x and w.
template <class T>
void grouped_linear_add(const lane&, at y, at x, at w, at offsets, at residual, int rows, int in, int out,
                        int segments, int experts);
template <class T>
void grouped_linear_two(const lane&, at y, at x, at w, at x2, at w2, at offsets, int rows, int in, int out,
                        int segments, int experts);

/// dw[e] = or += the sum over the rows r of expert e of dy[r]^T x[r]. The sum is zero for an expert without
/// rows.
/// Shapes: as above, dw (experts, out, in) in f32.
template <class T>
void grouped_linear_dw(const lane&, at dw, at dy, at x, at offsets, int rows, int in, int out, int segments,
                       int experts, bool accumulate);

}  // namespace rankc::runtime::cuda
