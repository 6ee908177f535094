// SPDX-License-Identifier: Apache-2.0
// Linear layers with fp8 operands that have one scale each or one for each row. cuBLASLt reads fp8 operands
// only along the summed dim, so gradients use the elements by columns. The sums of outputs partly have less
// precision than f32, which is cuBLASLt's fastest mode. The sums of gradients are f32.
#include <rankc/runtime/cuda/kernels.hpp>

#include "linear_shapes.hpp"

#include <rankc/contract/fp8.hpp>

namespace rankc::runtime::cuda {
namespace {

/// The types and offsets for a kind of scale.
struct one_scale {
  using layout = runtime::fp8_layout;
  static constexpr bool of_rows = false;
  static constexpr cudaDataType_t gradients = CUDA_R_8F_E5M2;
  static std::size_t row_factors(const layout& q) { return q.factor(); }
  static std::size_t column_factors(const layout& q) { return q.factor(); }
};
struct scales_of_rows {
  using layout = runtime::fp8_rows_layout;
  static constexpr bool of_rows = true;
  static constexpr cudaDataType_t gradients = CUDA_R_8F_E4M3;
  static std::size_t row_factors(const layout& q) { return q.row_factors(); }
  static std::size_t column_factors(const layout& q) { return q.column_factors(); }
};

/// An operand's elements, and its factors.
struct narrow {
  const unsigned char* elements;
  const float* factors;
};
template <class Scales>
narrow by_rows(const lane& on, at q, int rows, int columns) {
  const auto* base = on.at<unsigned char>(q);
  return {base, reinterpret_cast<const float*>(
                    base + Scales::row_factors({std::size_t(rows), std::size_t(columns)}))};
}
template <class Scales>
narrow by_columns(const lane& on, at q, int rows, int columns) {
  const auto* base = on.at<unsigned char>(q);
  const typename Scales::layout layout{std::size_t(rows), std::size_t(columns)};
  return {base + layout.by_columns(), reinterpret_cast<const float*>(base + Scales::column_factors(layout))};
}

template <class Scales>
product_shape shape_of(int m, int n, int k, bool add, cudaDataType_t b, cudaDataType_t out) {
  return {.m = m,
          .n = n,
          .k = k,
          .transpose_a = true,
          .transpose_b = false,
          .add = add,
          .in = CUDA_R_8F_E4M3,
          .in_b = b,
          .out = out,
          .row_factors = Scales::of_rows};
}
product_operands operands(void* d, const narrow& a, const narrow& b, const void* c = nullptr) {
  return {.d = d, .a = a.elements, .b = b.elements, .c = c, .factor_a = a.factors, .factor_b = b.factors};
}

/// y = x w^T, plus `bias` and `residual` if they are not null.
template <class Scales, class T>
bool forward(const lane& on, const char* name, at y, at x, at w, const T* bias, const T* residual, int tokens,
             int in, int out) {
  product_shape shape = shape_of<Scales>(out, tokens, in, residual != nullptr, CUDA_R_8F_E4M3, type_of<T>);
  shape.fast_sums = true;
  if (bias != nullptr) shape.epilogue = CUBLASLT_EPILOGUE_BIAS;
  product_operands with =
      operands(on.at<T>(y), by_rows<Scales>(on, w, out, in), by_rows<Scales>(on, x, tokens, in), residual);
  with.bias = bias;
  if (bias != nullptr) return sizeof(T) == 2 && try_product(on, name, shape, with);
  product(on, name, shape, with);
  return true;
}
template <class Scales, class T>
void forward_bias(const lane& on, const char* name, at y, at x, at w, at b, const T* residual, int tokens,
                  int in, int out) {
  if (forward<Scales, T>(on, name, y, x, w, on.at<T>(b), residual, tokens, in, out)) return;
  forward<Scales, T>(on, name, y, x, w, nullptr, residual, tokens, in, out);
  bias<T>(on, y, y, b, tokens, out);
}

template <class Scales, class T>
void input_gradient(const lane& on, const char* name, at dx, at dy, at w, int tokens, int in, int out,
                    bool accumulate) {
  T* d = on.at<T>(dx);
  product(on, name, shape_of<Scales>(in, tokens, out, accumulate, Scales::gradients, type_of<T>),
          operands(d, by_columns<Scales>(on, w, out, in), by_rows<Scales>(on, dy, tokens, out),
                   accumulate ? d : nullptr));
}
template <class Scales>
void weight_gradient(const lane& on, const char* name, at dw, at dy, at x, int tokens, int in, int out,
                     bool accumulate) {
  float* d = on.at<float>(dw);
  product(on, name, shape_of<Scales>(in, out, tokens, accumulate, Scales::gradients, CUDA_R_32F),
          operands(d, by_columns<Scales>(on, x, tokens, in), by_columns<Scales>(on, dy, tokens, out),
                   accumulate ? d : nullptr));
}

}  // namespace

template <class T>
void linear_fp8(const lane& on, at y, at x, at w, int tokens, int in, int out) {
  forward<one_scale, T>(on, "linear_fp8", y, x, w, nullptr, nullptr, tokens, in, out);
}
template <class T>
void linear_add_fp8(const lane& on, at y, at x, at w, at residual, int tokens, int in, int out) {
  forward<one_scale, T>(on, "linear_add_fp8", y, x, w, nullptr, on.at<T>(residual), tokens, in, out);
}
template <class T>
void linear_bias_fp8(const lane& on, at y, at x, at w, at b, int tokens, int in, int out) {
  forward_bias<one_scale, T>(on, "linear_bias_fp8", y, x, w, b, nullptr, tokens, in, out);
}
template <class T>
void linear_bias_add_fp8(const lane& on, at y, at x, at w, at b, at residual, int tokens, int in, int out) {
  forward_bias<one_scale, T>(on, "linear_bias_add_fp8", y, x, w, b, on.at<T>(residual), tokens, in, out);
}
template <class T>
void linear_dx_fp8(const lane& on, at dx, at dy, at w, int tokens, int in, int out, bool accumulate) {
  input_gradient<one_scale, T>(on, "linear_dx_fp8", dx, dy, w, tokens, in, out, accumulate);
}
template <class T>
void linear_dw_fp8(const lane& on, at dw, at dy, at x, int tokens, int in, int out, bool accumulate) {
  weight_gradient<one_scale>(on, "linear_dw_fp8", dw, dy, x, tokens, in, out, accumulate);
}

template <class T>
void linear_fp8_rows(const lane& on, at y, at x, at w, int tokens, int in, int out) {
  forward<scales_of_rows, T>(on, "linear_fp8_rows", y, x, w, nullptr, nullptr, tokens, in, out);
}
template <class T>
void linear_add_fp8_rows(const lane& on, at y, at x, at w, at residual, int tokens, int in, int out) {
  forward<scales_of_rows, T>(on, "linear_add_fp8_rows", y, x, w, nullptr, on.at<T>(residual), tokens, in,
                             out);
}
template <class T>
void linear_bias_fp8_rows(const lane& on, at y, at x, at w, at b, int tokens, int in, int out) {
  forward_bias<scales_of_rows, T>(on, "linear_bias_fp8_rows", y, x, w, b, nullptr, tokens, in, out);
}
template <class T>
void linear_bias_add_fp8_rows(const lane& on, at y, at x, at w, at b, at residual, int tokens, int in,
                              int out) {
  forward_bias<scales_of_rows, T>(on, "linear_bias_add_fp8_rows", y, x, w, b, on.at<T>(residual), tokens, in,
                                  out);
}
template <class T>
void linear_dx_fp8_rows(const lane& on, at dx, at dy, at w, int tokens, int in, int out, bool accumulate) {
  input_gradient<scales_of_rows, T>(on, "linear_dx_fp8_rows", dx, dy, w, tokens, in, out, accumulate);
}
template <class T>
void linear_dw_fp8_rows(const lane& on, at dw, at dy, at x, int tokens, int in, int out, bool accumulate) {
  weight_gradient<scales_of_rows>(on, "linear_dw_fp8_rows", dw, dy, x, tokens, in, out, accumulate);
}

template decltype(linear_fp8<float>) linear_fp8<float>;
template decltype(linear_fp8<bf16>) linear_fp8<bf16>;
template decltype(linear_bias_fp8<float>) linear_bias_fp8<float>;
template decltype(linear_bias_fp8<bf16>) linear_bias_fp8<bf16>;
template decltype(linear_add_fp8<float>) linear_add_fp8<float>;
template decltype(linear_add_fp8<bf16>) linear_add_fp8<bf16>;
template decltype(linear_bias_add_fp8<float>) linear_bias_add_fp8<float>;
template decltype(linear_bias_add_fp8<bf16>) linear_bias_add_fp8<bf16>;
template decltype(linear_dx_fp8<float>) linear_dx_fp8<float>;
template decltype(linear_dx_fp8<bf16>) linear_dx_fp8<bf16>;
template decltype(linear_dw_fp8<float>) linear_dw_fp8<float>;
template decltype(linear_dw_fp8<bf16>) linear_dw_fp8<bf16>;
template decltype(linear_fp8_rows<float>) linear_fp8_rows<float>;
template decltype(linear_fp8_rows<bf16>) linear_fp8_rows<bf16>;
template decltype(linear_bias_fp8_rows<float>) linear_bias_fp8_rows<float>;
template decltype(linear_bias_fp8_rows<bf16>) linear_bias_fp8_rows<bf16>;
template decltype(linear_add_fp8_rows<float>) linear_add_fp8_rows<float>;
template decltype(linear_add_fp8_rows<bf16>) linear_add_fp8_rows<bf16>;
template decltype(linear_bias_add_fp8_rows<float>) linear_bias_add_fp8_rows<float>;
template decltype(linear_bias_add_fp8_rows<bf16>) linear_bias_add_fp8_rows<bf16>;
template decltype(linear_dx_fp8_rows<float>) linear_dx_fp8_rows<float>;
template decltype(linear_dx_fp8_rows<bf16>) linear_dx_fp8_rows<bf16>;
template decltype(linear_dw_fp8_rows<float>) linear_dw_fp8_rows<float>;
template decltype(linear_dw_fp8_rows<bf16>) linear_dw_fp8_rows<bf16>;

}  // namespace rankc::runtime::cuda
