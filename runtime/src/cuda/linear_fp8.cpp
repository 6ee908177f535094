// SPDX-License-Identifier: Apache-2.0
// Linear layers on operands of eight bits. cuBLASLt takes these along what is summed over alone, so gradients take their
// operands by columns. Sums of outputs are in part of fewer digits, as cuBLASLt has them fastest; those of gradients are in f32.
#include <rankc/runtime/cuda/kernels.hpp>

#include "linear_shapes.hpp"

#include <rankc/runtime/fp8.hpp>

namespace rankc::cuda {
namespace {

using runtime::fp8_layout;

/// An operand's elements, and its factor.
struct narrow {
  const unsigned char* elements;
  const float* factor;
};
narrow by_rows(const lane& on, at q, int rows, int columns) {
  const auto* base = on.at<unsigned char>(q);
  const fp8_layout layout{std::size_t(rows) * columns};
  return {base, reinterpret_cast<const float*>(base + layout.factor())};
}
narrow by_columns(const lane& on, at q, int rows, int columns) {
  const auto [base, factor] = by_rows(on, q, rows, columns);
  return {base + fp8_layout{std::size_t(rows) * columns}.by_columns(), factor};
}

product_shape shape_of(int m, int n, int k, bool add, cudaDataType_t b, cudaDataType_t out) {
  return {.m = m, .n = n, .k = k, .transpose_a = true, .transpose_b = false, .add = add, .in = CUDA_R_8F_E4M3, .in_b = b, .out = out};
}
product_operands operands(void* d, const narrow& a, const narrow& b, const void* c = nullptr) {
  return {.d = d, .a = a.elements, .b = b.elements, .c = c, .factor_a = a.factor, .factor_b = b.factor};
}

/// y = x w^T, and what is added. `bias` and `residual` may be none.
template <class T>
bool forward(const lane& on, const char* name, at y, at x, at w, const T* bias, const T* residual, int tokens, int in, int out) {
  product_shape shape = shape_of(out, tokens, in, residual != nullptr, CUDA_R_8F_E4M3, type_of<T>);
  shape.fast_sums = true;
  if (bias != nullptr) shape.epilogue = CUBLASLT_EPILOGUE_BIAS;
  product_operands with = operands(on.at<T>(y), by_rows(on, w, out, in), by_rows(on, x, tokens, in), residual);
  with.bias = bias;
  if (bias != nullptr) return sizeof(T) == 2 && try_product(on, name, shape, with);
  product(on, name, shape, with);
  return true;
}

}  // namespace

template <class T>
void linear_fp8(const lane& on, at y, at x, at w, int tokens, int in, int out) {
  forward<T>(on, "linear_fp8", y, x, w, nullptr, nullptr, tokens, in, out);
}
template <class T>
void linear_add_fp8(const lane& on, at y, at x, at w, at residual, int tokens, int in, int out) {
  forward<T>(on, "linear_add_fp8", y, x, w, nullptr, on.at<T>(residual), tokens, in, out);
}
template <class T>
void linear_bias_fp8(const lane& on, at y, at x, at w, at b, int tokens, int in, int out) {
  if (forward<T>(on, "linear_bias_fp8", y, x, w, on.at<T>(b), nullptr, tokens, in, out)) return;
  linear_fp8<T>(on, y, x, w, tokens, in, out);
  bias<T>(on, y, y, b, tokens, out);
}
template <class T>
void linear_bias_add_fp8(const lane& on, at y, at x, at w, at b, at residual, int tokens, int in, int out) {
  if (forward<T>(on, "linear_bias_add_fp8", y, x, w, on.at<T>(b), on.at<T>(residual), tokens, in, out)) return;
  linear_add_fp8<T>(on, y, x, w, residual, tokens, in, out);
  bias<T>(on, y, y, b, tokens, out);
}

template <class T>
void linear_dx_fp8(const lane& on, at dx, at dy, at w, int tokens, int in, int out, bool accumulate) {
  T* d = on.at<T>(dx);
  product(on, "linear_dx_fp8", shape_of(in, tokens, out, accumulate, CUDA_R_8F_E5M2, type_of<T>),
          operands(d, by_columns(on, w, out, in), by_rows(on, dy, tokens, out), accumulate ? d : nullptr));
}
template <class T>
void linear_dw_fp8(const lane& on, at dw, at dy, at x, int tokens, int in, int out, bool accumulate) {
  float* d = on.at<float>(dw);
  product(on, "linear_dw_fp8", shape_of(in, out, tokens, accumulate, CUDA_R_8F_E5M2, CUDA_R_32F),
          operands(d, by_columns(on, x, tokens, in), by_columns(on, dy, tokens, out), accumulate ? d : nullptr));
}

template void linear_fp8<float>(const lane&, at, at, at, int, int, int);
template void linear_fp8<bf16>(const lane&, at, at, at, int, int, int);
template void linear_bias_fp8<float>(const lane&, at, at, at, at, int, int, int);
template void linear_bias_fp8<bf16>(const lane&, at, at, at, at, int, int, int);
template void linear_add_fp8<float>(const lane&, at, at, at, at, int, int, int);
template void linear_add_fp8<bf16>(const lane&, at, at, at, at, int, int, int);
template void linear_bias_add_fp8<float>(const lane&, at, at, at, at, at, int, int, int);
template void linear_bias_add_fp8<bf16>(const lane&, at, at, at, at, at, int, int, int);
template void linear_dx_fp8<float>(const lane&, at, at, at, int, int, int, bool);
template void linear_dx_fp8<bf16>(const lane&, at, at, at, int, int, int, bool);
template void linear_dw_fp8<float>(const lane&, at, at, at, int, int, int, bool);
template void linear_dw_fp8<bf16>(const lane&, at, at, at, int, int, int, bool);

}  // namespace rankc::cuda
