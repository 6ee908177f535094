// SPDX-License-Identifier: Apache-2.0
// The cuBLASLt plans of a rank: descriptors, layouts and the chosen algorithm, kept by shape. They are made
// when a shape first appears, in the eager run before capture, and live as long as the rank.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <map>
#include <memory>
#include <tuple>

namespace rankc::cuda {

/// A column-major product d (m, n) = op(a) op(b) + beta d, with k summed over.
/// Units: `alignment` in bytes, that of the least aligned operand, at most 256.
struct product_shape {
  int m, n, k;
  bool transpose_a, transpose_b;
  bool accumulate;         // beta = 1
  cudaDataType_t in, out;  // type of a and b; type of d
  int alignment;
  auto key() const { return std::tuple(m, n, k, transpose_a, transpose_b, accumulate, in, out, alignment); }
  bool operator<(const product_shape& other) const { return key() < other.key(); }
};

/// One plan; its descriptors are destroyed with it.
struct linear_plan {
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  linear_plan() = default;
  linear_plan(const linear_plan&) = delete;
  linear_plan& operator=(const linear_plan&) = delete;
  ~linear_plan();
};

struct linear_plans {
  std::map<product_shape, std::unique_ptr<linear_plan>> by_shape;
};

}  // namespace rankc::cuda
