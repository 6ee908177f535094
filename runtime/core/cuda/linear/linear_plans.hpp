// SPDX-License-Identifier: Apache-2.0
// The cuBLASLt plans of a lane: descriptors, layouts and the chosen algorithm, by shape. A plan is made when
// its shape first appears, in the eager run before the capture, and lives as long as the lane.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace rankc::runtime::cuda {

/// A column-major GEMM d (m, n) = epilogue(op(a) op(b) + beta c), summed over k.
/// Units: `alignment` in bytes, that of the least aligned operand, at most 256.
struct product_shape {
  int m, n, k;
  bool transpose_a, transpose_b;
  bool add;                  // beta = 1
  cudaDataType_t in;         // type of a
  cudaDataType_t in_b = in;  // type of b
  cudaDataType_t out;        // type of c and d
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  bool fast_sums = false;    // fp8 operands: sums partly have less precision than f32
  bool row_factors = false;  // fp8 operands: one for each row of op(a), and for each column of op(b)
  int alignment = 0;
  auto operator<=>(const product_shape&) const = default;
};

/// The addresses of a GEMM's operands. c is read only if the shape has `add`, and may be d.
struct product_operands {
  void* d;
  const void *a, *b;
  const void* c = nullptr;
  const void* bias = nullptr;  // (m), of d's type
  void* aux = nullptr;         // (m, n) input of GELU: written by GELU_AUX, read by DGELU
  const float *factor_a = nullptr,
              *factor_b = nullptr;  // fp8 operands: dequantization factors
};

/// The algorithm of a GEMM.
/// Units: milliseconds of a run among other candidates; 0: not timed.
struct product_choice {
  std::optional<cublasLtMatmulAlgo_t> algorithm;  // none: cuBLASLt does not support the GEMM
  float milliseconds = 0;
};

/// One plan; its descriptors are destroyed with it.
struct linear_plan {
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  const product_choice* choice = nullptr;  // owned by product_choices (product_choices.hpp)
  linear_plan() = default;
  linear_plan(const linear_plan&) = delete;
  linear_plan& operator=(const linear_plan&) = delete;
  ~linear_plan();
};

struct linear_plans {
  std::map<product_shape, std::unique_ptr<linear_plan>> by_shape;
};

/// Enqueues one GEMM with one algorithm. If cuBLASLt rejects it, its status is returned and nothing is
/// enqueued.
cublasStatus_t enqueue(const lane&, const linear_plan&, const cublasLtMatmulAlgo_t&, const product_shape&,
                       const product_operands&);

/// The proposals of cuBLASLt's heuristics for a GEMM, the most promising first; empty if it does not support
/// the GEMM.
std::vector<cublasLtMatmulAlgo_t> proposals(const lane&, const linear_plan&, const product_shape&);
/// Algorithms that cuBLASLt can run and that differ from this one in their variant (cuBLASLt's "custom
/// option"), or in the order in which blocks take tiles.
std::vector<cublasLtMatmulAlgo_t> other_variants(const lane&, const linear_plan&,
                                                 const cublasLtMatmulAlgo_t&);
std::vector<cublasLtMatmulAlgo_t> other_orders(const lane&, const linear_plan&, const cublasLtMatmulAlgo_t&);
/// True if cuBLASLt can run the algorithm within the lane's workspace.
bool runs(const lane&, const linear_plan&, const cublasLtMatmulAlgo_t&);

/// The fastest algorithm for these operands. If timing is not possible, it is the first proposal. Outputs
/// that are not inputs are left undefined.
product_choice choose_algorithm(const lane&, const linear_plan&, const product_shape&,
                                const product_operands&);

/// The time of a GEMM with its chosen algorithm.
/// Units: milliseconds; 0: it was not timed, or cuBLASLt does not support it.
float milliseconds_of(const lane&, product_shape, const product_operands&);

/// d = epilogue(op(a) op(b) + beta c). Returns false, with nothing enqueued, if cuBLASLt has no algorithm for
/// it.
bool try_product(const lane&, const char* name, product_shape, const product_operands&);

/// Enqueues a GEMM like try_product, but cuBLASLt must support it.
/// Errors: failure (70) that names the shape.
void product(const lane&, const char* name, const product_shape&, const product_operands&);

}  // namespace rankc::runtime::cuda
