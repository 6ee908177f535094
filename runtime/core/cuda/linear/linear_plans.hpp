// SPDX-License-Identifier: Apache-2.0
// The cuBLASLt plans of a lane: descriptors, layouts and the chosen algorithm, kept by shape. They are made
// when a shape first appears, in the eager run before capture, and live as long as the lane.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace rankc::runtime::cuda {

/// A column-major product d (m, n) = epilogue(op(a) op(b) + beta c), with k summed over.
/// Units: `alignment` in bytes, that of the least aligned operand, at most 256.
struct product_shape {
  int m, n, k;
  bool transpose_a, transpose_b;
  bool add;                  // beta = 1
  cudaDataType_t in;         // type of a
  cudaDataType_t in_b = in;  // type of b
  cudaDataType_t out;        // type of c and d
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  bool fast_sums = false;  // of operands of eight bits: in part with fewer digits than f32
  bool row_factors =
      false;  // of operands of eight bits: one for each row of op(a), and for each column of op(b)
  int alignment = 0;
  auto operator<=>(const product_shape&) const = default;
};

/// Where a product's operands lie. c is read only where the shape says `add`, and may be d.
struct product_operands {
  void* d;
  const void *a, *b;
  const void* c = nullptr;
  const void* bias = nullptr;  // (m), of d's type
  void* aux = nullptr;         // (m, n) what GELU was taken of: written by GELU_AUX, read by DGELU
  const float *factor_a = nullptr,
              *factor_b = nullptr;  // of operands of eight bits: what they are multiplied by
};

/// Which algorithm does a product. Units: milliseconds of a run among others like it; 0: not timed.
struct product_choice {
  std::optional<cublasLtMatmulAlgo_t> algorithm;  // none: cuBLASLt cannot do it
  float milliseconds = 0;
};

/// One plan; its descriptors are destroyed with it.
struct linear_plan {
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, d = nullptr;
  const product_choice* choice = nullptr;  // of the process (product_choices.hpp)
  linear_plan() = default;
  linear_plan(const linear_plan&) = delete;
  linear_plan& operator=(const linear_plan&) = delete;
  ~linear_plan();
};

struct linear_plans {
  std::map<product_shape, std::unique_ptr<linear_plan>> by_shape;
};

/// Enqueue one product by one algorithm. A refusal by cuBLASLt is returned, and leaves nothing enqueued.
cublasStatus_t enqueue(const lane&, const linear_plan&, const cublasLtMatmulAlgo_t&, const product_shape&,
                       const product_operands&);

/// What cuBLASLt's heuristics propose for a product, the most promising first; nothing where it cannot do it.
std::vector<cublasLtMatmulAlgo_t> proposals(const lane&, const linear_plan&, const product_shape&);
/// Algorithms that differ from this one in their variant (cuBLASLt's "custom option"), or in the order in
/// which blocks take their tiles, and that cuBLASLt can run.
std::vector<cublasLtMatmulAlgo_t> other_variants(const lane&, const linear_plan&,
                                                 const cublasLtMatmulAlgo_t&);
std::vector<cublasLtMatmulAlgo_t> other_orders(const lane&, const linear_plan&, const cublasLtMatmulAlgo_t&);
/// Whether cuBLASLt can run it within the lane's workspace.
bool runs(const lane&, const linear_plan&, const cublasLtMatmulAlgo_t&);

/// The fastest algorithm on these operands: timed where time may be taken, else the first proposal. Outputs
/// that are no inputs are left undefined.
product_choice choose_algorithm(const lane&, const linear_plan&, const product_shape&,
                                const product_operands&);

/// What a product takes by the algorithm that is chosen for it. Units: milliseconds; 0: it was not timed, or
/// cuBLASLt cannot do it.
float milliseconds_of(const lane&, product_shape, const product_operands&);

/// d = epilogue(op(a) op(b) + beta c) ; false, with nothing enqueued, where cuBLASLt has no
/// algorithm for it.
bool try_product(const lane&, const char* name, product_shape, const product_operands&);

/// The same where there must be one.
/// Errors: failure (70) naming the shape.
void product(const lane&, const char* name, const product_shape&, const product_operands&);

}  // namespace rankc::runtime::cuda
