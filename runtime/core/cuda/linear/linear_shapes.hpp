// SPDX-License-Identifier: Apache-2.0
// The three GEMMs of a linear layer in cuBLASLt's form. It is column-major, so a row-major (rows, cols) is
// its (cols, rows), and every GEMM is written transposed. f32 stays f32 (no tf32), bf16 accumulates in f32,
// and weight gradients are written in f32.
#pragma once
#include "linear_plans.hpp"

#include <type_traits>

namespace rankc::runtime::cuda {

template <class T>
inline constexpr cudaDataType_t type_of = std::is_same_v<T, float> ? CUDA_R_32F : CUDA_R_16BF;

/// y^T (out, tokens) = w (out, in) x^T (in, tokens); in columns w is (in, out), hence transposed.
template <class T>
product_shape forward_shape(int tokens, int in, int out, bool add = false,
                            cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT) {
  return {.m = out,
          .n = tokens,
          .k = in,
          .transpose_a = true,
          .transpose_b = false,
          .add = add,
          .in = type_of<T>,
          .out = type_of<T>,
          .epilogue = epilogue};
}

/// dx^T (in, tokens) = w^T (in, out) dy^T (out, tokens).
template <class T>
product_shape input_gradient_shape(int tokens, int in, int out, bool add = false,
                                   cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT) {
  return {.m = in,
          .n = tokens,
          .k = out,
          .transpose_a = false,
          .transpose_b = false,
          .add = add,
          .in = type_of<T>,
          .out = type_of<T>,
          .epilogue = epilogue};
}

/// dw^T (in, out) = x^T (in, tokens) dy (tokens, out); in columns dy is (out, tokens), hence transposed.
template <class T>
product_shape weight_gradient_shape(int tokens, int in, int out, bool add) {
  return {.m = in,
          .n = out,
          .k = tokens,
          .transpose_a = false,
          .transpose_b = true,
          .add = add,
          .in = type_of<T>,
          .out = CUDA_R_32F};
}

}  // namespace rankc::runtime::cuda
