// SPDX-License-Identifier: Apache-2.0
// Records the kernels of cuda/fused.hpp: each operand with the shape in the header. Included inside
// rankc::cuda.

template <class T>
void linear_bias(const lane& on, at y, at x, at w, at b, int tokens, int in, int out) {
  kernel(on, "linear_bias")
      .out(y, all<T>(tokens, out))
      .in(x, all<T>(tokens, in))
      .in(w, all<T>(out, in))
      .in(b, all<T>(out));
}
template <class T>
void linear_add(const lane& on, at y, at x, at w, at residual, int tokens, int in, int out) {
  kernel(on, "linear_add")
      .out(y, all<T>(tokens, out))
      .in(x, all<T>(tokens, in))
      .in(w, all<T>(out, in))
      .in(residual, all<T>(tokens, out));
}
template <class T>
void linear_bias_add(const lane& on, at y, at x, at w, at b, at residual, int tokens, int in, int out) {
  kernel(on, "linear_bias_add")
      .out(y, all<T>(tokens, out))
      .in(x, all<T>(tokens, in))
      .in(w, all<T>(out, in))
      .in(b, all<T>(out))
      .in(residual, all<T>(tokens, out));
}
template <class T>
void linear_gelu(const lane& on, at y, at before, at x, at w, int tokens, int in, int out) {
  kernel(on, "linear_gelu")
      .out(y, all<T>(tokens, out))
      .out(before, all<T>(tokens, out))
      .in(x, all<T>(tokens, in))
      .in(w, all<T>(out, in));
}
template <class T>
void linear_bias_gelu(const lane& on, at y, at before, at x, at w, at b, int tokens, int in, int out) {
  kernel(on, "linear_bias_gelu")
      .out(y, all<T>(tokens, out))
      .out(before, all<T>(tokens, out))
      .in(x, all<T>(tokens, in))
      .in(w, all<T>(out, in))
      .in(b, all<T>(out));
}

template <class T>
void linear_dx_gelu(const lane& on, at dx, at dy, at w, at before, int tokens, int in, int out) {
  kernel(on, "linear_dx_gelu")
      .out(dx, all<T>(tokens, in))
      .in(dy, all<T>(tokens, out))
      .in(w, all<T>(out, in))
      .in(before, all<T>(tokens, in));
}
template <class T>
void linear_dx_gelu_bias(const lane& on, at dx, at db, at dy, at w, at before, int tokens, int in, int out,
                         bool accumulate) {
  kernel(on, "linear_dx_gelu_bias")
      .out(dx, all<T>(tokens, in))
      .sum(db, accumulate, all<float>(in))
      .in(dy, all<T>(tokens, out))
      .in(w, all<T>(out, in))
      .in(before, all<T>(tokens, in));
}
template <class T>
void linear_dw_bias(const lane& on, at dw, at db, at dy, at x, int tokens, int in, int out, bool accumulate) {
  kernel(on, "linear_dw_bias")
      .sum(dw, accumulate, all<float>(out, in))
      .sum(db, accumulate, all<float>(out))
      .in(dy, all<T>(tokens, out))
      .in(x, all<T>(tokens, in));
}

template <class T>
void bias_add(const lane& on, at y, at x, at b, at residual, int tokens, int width) {
  kernel(on, "bias_add")
      .out(y, all<T>(tokens, width))
      .in(x, all<T>(tokens, width))
      .in(b, all<T>(width))
      .in(residual, all<T>(tokens, width));
}

template <class T>
void add_layer_norm(const lane& on, at sum, at y, at stats, at x, at residual, at gain, at shift, int tokens,
                    int width, double eps) {
  kernel(on, "add_layer_norm")
      .with(eps)
      .out(sum, all<T>(tokens, width))
      .out(y, all<T>(tokens, width))
      .out(stats, all<float>(tokens, 2))
      .in(x, all<T>(tokens, width))
      .in(residual, all<T>(tokens, width))
      .in(gain, all<T>(width))
      .in(shift, all<T>(width));
}
template <class T>
void bias_add_layer_norm(const lane& on, at sum, at y, at stats, at x, at b, at residual, at gain, at shift,
                         int tokens, int width, double eps) {
  kernel(on, "bias_add_layer_norm")
      .with(eps)
      .out(sum, all<T>(tokens, width))
      .out(y, all<T>(tokens, width))
      .out(stats, all<float>(tokens, 2))
      .in(x, all<T>(tokens, width))
      .in(b, all<T>(width))
      .in(residual, all<T>(tokens, width))
      .in(gain, all<T>(width))
      .in(shift, all<T>(width));
}
template <class T>
void add_rms_norm(const lane& on, at sum, at y, at stats, at x, at residual, at gain, int tokens, int width,
                  double eps) {
  kernel(on, "add_rms_norm")
      .with(eps)
      .out(sum, all<T>(tokens, width))
      .out(y, all<T>(tokens, width))
      .out(stats, all<float>(tokens))
      .in(x, all<T>(tokens, width))
      .in(residual, all<T>(tokens, width))
      .in(gain, all<T>(width));
}

template <class T>
void layer_norm_grad(const lane& on, at dx, at dgain, at dshift, at dy, at x, at stats, at gain, int tokens,
                     int width, bool accumulate) {
  kernel(on, "layer_norm_grad")
      .out(dx, all<T>(tokens, width))
      .sum(dgain, accumulate, all<float>(width))
      .sum(dshift, accumulate, all<float>(width))
      .in(dy, all<T>(tokens, width))
      .in(x, all<T>(tokens, width))
      .in(stats, all<float>(tokens, 2))
      .in(gain, all<T>(width));
}
template <class T>
void layer_norm_grad_add(const lane& on, at dx, at dgain, at dshift, at dy, at x, at stats, at gain,
                         at residual, int tokens, int width, bool accumulate) {
  kernel(on, "layer_norm_grad_add")
      .out(dx, all<T>(tokens, width))
      .sum(dgain, accumulate, all<float>(width))
      .sum(dshift, accumulate, all<float>(width))
      .in(dy, all<T>(tokens, width))
      .in(x, all<T>(tokens, width))
      .in(stats, all<float>(tokens, 2))
      .in(gain, all<T>(width))
      .in(residual, all<T>(tokens, width));
}
template <class T>
void layer_norm_grad_add_bias(const lane& on, at dx, at dgain, at dshift, at db, at dy, at x, at stats,
                              at gain, at residual, int tokens, int width, bool accumulate) {
  kernel(on, "layer_norm_grad_add_bias")
      .out(dx, all<T>(tokens, width))
      .sum(dgain, accumulate, all<float>(width))
      .sum(dshift, accumulate, all<float>(width))
      .sum(db, accumulate, all<float>(width))
      .in(dy, all<T>(tokens, width))
      .in(x, all<T>(tokens, width))
      .in(stats, all<float>(tokens, 2))
      .in(gain, all<T>(width))
      .in(residual, all<T>(tokens, width));
}
template <class T>
void rms_norm_grad(const lane& on, at dx, at dgain, at dy, at x, at stats, at gain, int tokens, int width,
                   bool accumulate) {
  kernel(on, "rms_norm_grad")
      .out(dx, all<T>(tokens, width))
      .sum(dgain, accumulate, all<float>(width))
      .in(dy, all<T>(tokens, width))
      .in(x, all<T>(tokens, width))
      .in(stats, all<float>(tokens))
      .in(gain, all<T>(width));
}
template <class T>
void rms_norm_grad_add(const lane& on, at dx, at dgain, at dy, at x, at stats, at gain, at residual,
                       int tokens, int width, bool accumulate) {
  kernel(on, "rms_norm_grad_add")
      .out(dx, all<T>(tokens, width))
      .sum(dgain, accumulate, all<float>(width))
      .in(dy, all<T>(tokens, width))
      .in(x, all<T>(tokens, width))
      .in(stats, all<float>(tokens))
      .in(gain, all<T>(width))
      .in(residual, all<T>(tokens, width));
}

template <class T>
void softmax_sums(const lane& on, at top, at sums, at logits, at targets, int tokens, int vocab) {
  kernel(on, "softmax_sums")
      .out(top, all<float>(tokens))
      .out(sums, all<float>(tokens, 2))
      .in(logits, all<T>(tokens, vocab))
      .in(targets, all<std::int32_t>(tokens));
  expect_first_column(vocab, 0);
}
template <class T>
void softmax_grad(const lane& on, at dlogits, at sums, at logits, at top, at targets, int tokens, int vocab,
                  int first, double scale) {
  kernel(on, "softmax_grad")
      .with(scale)
      .out(dlogits, all<T>(tokens, vocab))
      .in(sums, all<float>(tokens, 2))
      .in(logits, all<T>(tokens, vocab))
      .in(top, all<float>(tokens))
      .in(targets, all<std::int32_t>(tokens));
  expect_first_column(vocab, first);
}
template <class T>
void softmax_sums_grad(const lane& on, at dlogits, at sums, at logits, at targets, int tokens, int vocab,
                       double scale) {
  kernel(on, "softmax_sums_grad")
      .with(scale)
      .out(dlogits, all<T>(tokens, vocab))
      .out(sums, all<float>(tokens, 2))
      .in(logits, all<T>(tokens, vocab))
      .in(targets, all<std::int32_t>(tokens));
  expect_first_column(vocab, 0);
}

template <class T>
void grouped_linear_add(const lane& on, at y, at x, at w, at offsets, at residual, int rows, int in, int out,
                        int segments, int experts) {
  kernel(on, "grouped_linear_add")
      .out(y, all<T>(rows, out))
      .in(x, all<T>(rows, in))
      .in(w, all<T>(experts * out, in))
      .in(offsets, all<std::int32_t>(2, segments))
      .in(residual, all<T>(rows, out));
}
template <class T>
void grouped_linear_two(const lane& on, at y, at x, at w, at x2, at w2, at offsets, int rows, int in, int out,
                        int segments, int experts) {
  kernel(on, "grouped_linear_two")
      .out(y, all<T>(rows, out))
      .in(x, all<T>(rows, in))
      .in(w, all<T>(experts * out, in))
      .in(x2, all<T>(rows, in))
      .in(w2, all<T>(experts * out, in))
      .in(offsets, all<std::int32_t>(2, segments));
}

/// A GEMM on fp8 tensors; `narrow` gives their shape. The caller adds a bias or a residual.
kernel& product_of(kernel&& of, shape (*narrow)(std::size_t, std::size_t), at y, const shape& made, at x,
                   at w, int tokens, int in, int out) {
  return of.out(y, made).in(x, narrow(tokens, in)).in(w, narrow(out, in));
}
template <class T>
void linear_bias_fp8(const lane& on, at y, at x, at w, at b, int tokens, int in, int out) {
  product_of(kernel(on, "linear_bias_fp8"), fp8, y, all<T>(tokens, out), x, w, tokens, in, out)
      .in(b, all<T>(out));
}
template <class T>
void linear_add_fp8(const lane& on, at y, at x, at w, at residual, int tokens, int in, int out) {
  product_of(kernel(on, "linear_add_fp8"), fp8, y, all<T>(tokens, out), x, w, tokens, in, out)
      .in(residual, all<T>(tokens, out));
}
template <class T>
void linear_bias_add_fp8(const lane& on, at y, at x, at w, at b, at residual, int tokens, int in, int out) {
  product_of(kernel(on, "linear_bias_add_fp8"), fp8, y, all<T>(tokens, out), x, w, tokens, in, out)
      .in(b, all<T>(out))
      .in(residual, all<T>(tokens, out));
}
template <class T>
void linear_bias_fp8_rows(const lane& on, at y, at x, at w, at b, int tokens, int in, int out) {
  product_of(kernel(on, "linear_bias_fp8_rows"), fp8_rows, y, all<T>(tokens, out), x, w, tokens, in, out)
      .in(b, all<T>(out));
}
template <class T>
void linear_add_fp8_rows(const lane& on, at y, at x, at w, at residual, int tokens, int in, int out) {
  product_of(kernel(on, "linear_add_fp8_rows"), fp8_rows, y, all<T>(tokens, out), x, w, tokens, in, out)
      .in(residual, all<T>(tokens, out));
}
template <class T>
void linear_bias_add_fp8_rows(const lane& on, at y, at x, at w, at b, at residual, int tokens, int in,
                              int out) {
  product_of(kernel(on, "linear_bias_add_fp8_rows"), fp8_rows, y, all<T>(tokens, out), x, w, tokens, in, out)
      .in(b, all<T>(out))
      .in(residual, all<T>(tokens, out));
}

#define RANKC_RECORDED_FUSED(T)                                                                          \
  &linear_bias<T>, &linear_add<T>, &linear_bias_add<T>, &linear_gelu<T>, &linear_bias_gelu<T>,           \
      &linear_dx_gelu<T>, &linear_dx_gelu_bias<T>, &linear_dw_bias<T>, &bias_add<T>, &add_layer_norm<T>, \
      &bias_add_layer_norm<T>, &add_rms_norm<T>, &layer_norm_grad<T>, &layer_norm_grad_add<T>,           \
      &layer_norm_grad_add_bias<T>, &rms_norm_grad<T>, &rms_norm_grad_add<T>, &softmax_sums<T>,          \
      &softmax_grad<T>, &softmax_sums_grad<T>, &grouped_linear_add<T>, &grouped_linear_two<T>,           \
      &linear_bias_fp8<T>, &linear_add_fp8<T>, &linear_bias_add_fp8<T>, &linear_bias_fp8_rows<T>,        \
      &linear_add_fp8_rows<T>, &linear_bias_add_fp8_rows<T>
