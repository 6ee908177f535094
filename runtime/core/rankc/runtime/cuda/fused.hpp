// SPDX-License-Identifier: Apache-2.0
// Kernels that do the work of several kernels of kernels.hpp and read memory fewer times. The generator's
// fuse pass chooses them. Operand types and rules are those of kernels.hpp. db, dgain and dshift are
// parameter gradients (f32); `accumulate` decides if they are overwritten or added to.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>
#include <rankc/contract/fp8.hpp>

namespace rankc::runtime::cuda {

/// y = x w^T, plus the terms in the name, in this order: + b, + residual. linear_gelu: before = x w^T (+ b),
/// y = gelu(before). In bf16 the sum to which a residual is added is rounded first.
/// Shapes: x (tokens, in), w (out, in), b (out), y, residual and before (tokens, out). y may be residual.
template <class T>
void linear_bias(const lane&, at y, at x, at w, at b, int tokens, int in, int out);
template <class T>
void linear_add(const lane&, at y, at x, at w, at residual, int tokens, int in, int out);
template <class T>
void linear_bias_add(const lane&, at y, at x, at w, at b, at residual, int tokens, int in, int out);
template <class T>
void linear_gelu(const lane&, at y, at before, at x, at w, int tokens, int in, int out);
template <class T>
void linear_bias_gelu(const lane&, at y, at before, at x, at w, at b, int tokens, int in, int out);

/// q = x in fp8, scaled so that max|x| becomes the largest number of the format. q stores the elements by
/// rows and by columns, and its factor (fp8_layout).
/// Shapes: x, q (rows, columns), each a multiple of 16.
template <class T>
void to_e4m3(const lane&, at q, at x, int rows, int columns);
template <class T>
void to_e5m2(const lane&, at q, at x, int rows, int columns);
/// Norms, gelu, swiglu and swiglu_grad with fp8 results. The bits are those of the unfused kernel followed by
/// a rounding. dgate and dup are the two halves of the columns of one tensor.
template <class T>
void layer_norm_e4m3(const lane&, at y, at stats, at x, at gain, at shift, int tokens, int width, double eps);
template <class T>
void rms_norm_e4m3(const lane&, at y, at stats, at x, at gain, int tokens, int width, double eps);
template <class T>
void gelu_e4m3(const lane&, at y, at x, int tokens, int width);
template <class T>
void swiglu_e4m3(const lane&, at y, at gate, at up, int tokens, int width, int stride);
template <class T>
void swiglu_grad_e5m2(const lane&, at dgate, at dup, at dy, at gate, at up, int tokens, int width,
                      int stride);
/// Linear layers with fp8 operands: x and w are e4m3, dy is e5m2.
/// Shapes: as the kernels without fp8; all sizes are multiples of 16.
template <class T>
void linear_fp8(const lane&, at y, at x, at w, int tokens, int in, int out);
template <class T>
void linear_bias_fp8(const lane&, at y, at x, at w, at b, int tokens, int in, int out);
template <class T>
void linear_add_fp8(const lane&, at y, at x, at w, at residual, int tokens, int in, int out);
template <class T>
void linear_bias_add_fp8(const lane&, at y, at x, at w, at b, at residual, int tokens, int in, int out);
template <class T>
void linear_dx_fp8(const lane&, at dx, at dy, at w, int tokens, int in, int out, bool accumulate);
template <class T>
void linear_dw_fp8(const lane&, at dw, at dy, at x, int tokens, int in, int out, bool accumulate);

/// The kernels above with a scale for each row, and a scale for each column of the elements by columns
/// (fp8_rows_layout). All operands are e4m3_rows.
template <class T>
void to_e4m3_rows(const lane&, at q, at x, int rows, int columns);
template <class T>
void layer_norm_e4m3_rows(const lane&, at y, at stats, at x, at gain, at shift, int tokens, int width,
                          double eps);
template <class T>
void rms_norm_e4m3_rows(const lane&, at y, at stats, at x, at gain, int tokens, int width, double eps);
template <class T>
void gelu_e4m3_rows(const lane&, at y, at x, int tokens, int width);
template <class T>
void swiglu_e4m3_rows(const lane&, at y, at gate, at up, int tokens, int width, int stride);
template <class T>
void swiglu_grad_e4m3_rows(const lane&, at dgate, at dup, at dy, at gate, at up, int tokens, int width,
                           int stride);
template <class T>
void linear_fp8_rows(const lane&, at y, at x, at w, int tokens, int in, int out);
template <class T>
void linear_bias_fp8_rows(const lane&, at y, at x, at w, at b, int tokens, int in, int out);
template <class T>
void linear_add_fp8_rows(const lane&, at y, at x, at w, at residual, int tokens, int in, int out);
template <class T>
void linear_bias_add_fp8_rows(const lane&, at y, at x, at w, at b, at residual, int tokens, int in, int out);
template <class T>
void linear_dx_fp8_rows(const lane&, at dx, at dy, at w, int tokens, int in, int out, bool accumulate);
template <class T>
void linear_dw_fp8_rows(const lane&, at dw, at dy, at x, int tokens, int in, int out, bool accumulate);

/// dx = (dy w) * gelu'(before); linear_dx_gelu_bias also sums dx over tokens into db.
/// Shapes: dx and before (tokens, in), db (in), dy (tokens, out), w (out, in).
template <class T>
void linear_dx_gelu(const lane&, at dx, at dy, at w, at before, int tokens, int in, int out);
template <class T>
void linear_dx_gelu_bias(const lane&, at dx, at db, at dy, at w, at before, int tokens, int in, int out,
                         bool accumulate);

/// linear_dw, and the sum of dy over tokens into db.
/// Shapes: dw (out, in), db (out), dy (tokens, out), x (tokens, in).
template <class T>
void linear_dw_bias(const lane&, at dw, at db, at dy, at x, int tokens, int in, int out, bool accumulate);

/// y = residual + (x + b).
/// Shapes: all (tokens, width), b (width). y may be x or residual.
template <class T>
void bias_add(const lane&, at y, at x, at b, at residual, int tokens, int width);

/// sum = residual + x (+ b), rounded; then y = norm(sum).
/// Shapes: as layer_norm and rms_norm; sum, x and residual (tokens, width), b (width). sum may be x or
/// residual.
template <class T>
void add_layer_norm(const lane&, at sum, at y, at stats, at x, at residual, at gain, at shift, int tokens,
                    int width, double eps);
template <class T>
void bias_add_layer_norm(const lane&, at sum, at y, at stats, at x, at b, at residual, at gain, at shift,
                         int tokens, int width, double eps);
template <class T>
void add_rms_norm(const lane&, at sum, at y, at stats, at x, at residual, at gain, int tokens, int width,
                  double eps);

/// The whole backward of a norm in one kernel: dx, dgain (and dshift). With `_add`, dx = residual + the
/// norm's dx. With `_bias`, the sum of the residual over tokens goes to db.
/// Shapes: as layer_norm_dx and layer_norm_dw; residual (tokens, width), db (width). dx may be dy or
/// residual.
template <class T>
void layer_norm_grad(const lane&, at dx, at dgain, at dshift, at dy, at x, at stats, at gain, int tokens,
                     int width, bool accumulate);
template <class T>
void layer_norm_grad_add(const lane&, at dx, at dgain, at dshift, at dy, at x, at stats, at gain, at residual,
                         int tokens, int width, bool accumulate);
template <class T>
void layer_norm_grad_add_bias(const lane&, at dx, at dgain, at dshift, at db, at dy, at x, at stats, at gain,
                              at residual, int tokens, int width, bool accumulate);
template <class T>
void rms_norm_grad(const lane&, at dx, at dgain, at dy, at x, at stats, at gain, int tokens, int width,
                   bool accumulate);
template <class T>
void rms_norm_grad_add(const lane&, at dx, at dgain, at dy, at x, at stats, at gain, at residual, int tokens,
                       int width, bool accumulate);

/// row_max and exp_sums with one read of the logits, for a vocabulary that is not sharded.
/// Shapes: top (tokens), sums (tokens, 2), logits (tokens, vocab), targets int32 (tokens).
template <class T>
void softmax_sums(const lane&, at top, at sums, at logits, at targets, int tokens, int vocab);

/// softmax_sums and softmax_grad in one kernel.
/// Shapes: as these. dlogits may be logits.
template <class T>
void softmax_sums_grad(const lane&, at dlogits, at sums, at logits, at targets, int tokens, int vocab,
                       double scale);

/// cross_entropy_grad and exp_sums_grad in one kernel: dlogits = scale * (softmax - [column is the target]).
/// Shapes: as exp_sums_grad; sums (tokens, 2) of the whole vocabulary. dlogits may be logits.
template <class T>
void softmax_grad(const lane&, at dlogits, at sums, at logits, at top, at targets, int tokens, int vocab,
                  int first, double scale);

/// softmax_sums_grad and softmax_grad for a loss that ignores negative targets and is divided by `count`. The
/// rows of ignored targets are 0.
/// Shapes: count (1).
template <class T>
void masked_softmax_sums_grad(const lane&, at dlogits, at sums, at logits, at targets, at count, int tokens,
                              int vocab, double scale);
template <class T>
void masked_softmax_grad(const lane&, at dlogits, at sums, at logits, at top, at targets, at count,
                         int tokens, int vocab, int first, double scale);
/// The same with each token's gradient times its weight. `count` is the sum of the weights in the step.
/// Shapes: weights (tokens).
template <class T>
void weighted_softmax_sums_grad(const lane&, at dlogits, at sums, at logits, at targets, at weights, at count,
                                int tokens, int vocab, double scale);
template <class T>
void weighted_softmax_grad(const lane&, at dlogits, at sums, at logits, at top, at targets, at weights,
                           at count, int tokens, int vocab, int first, double scale);

}  // namespace rankc::runtime::cuda
