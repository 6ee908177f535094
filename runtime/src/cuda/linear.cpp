// SPDX-License-Identifier: Apache-2.0
// Linear layers by cuBLASLt. It counts in columns, so a row-major (rows, cols) is its (cols, rows): every
// product here is written transposed. f32 stays f32 (no tf32), bf16 accumulates in f32, and weight gradients
// leave in f32.
#include <rankc/runtime/cuda/kernels.hpp>

#include "check.hpp"
#include "linear_plans.hpp"

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace rankc::cuda {

linear_plan::~linear_plan() {
  if (d != nullptr) cublasLtMatrixLayoutDestroy(d);
  if (b != nullptr) cublasLtMatrixLayoutDestroy(b);
  if (a != nullptr) cublasLtMatrixLayoutDestroy(a);
  if (description != nullptr) cublasLtMatmulDescDestroy(description);
}

namespace {

template <class T>
constexpr cudaDataType_t type_of = std::is_same_v<T, float> ? CUDA_R_32F : CUDA_R_16BF;

/// The largest power of two, up to 256, that divides all addresses: what cuBLASLt may assume of them.
int alignment_of(const void* a, const void* b, const void* d) {
  const auto bits = reinterpret_cast<std::uintptr_t>(a) | reinterpret_cast<std::uintptr_t>(b) |
                    reinterpret_cast<std::uintptr_t>(d);
  return static_cast<int>(std::min<std::uintptr_t>(256, bits & (~bits + 1)));
}

cublasLtMatrixLayout_t layout_of(rank& r, cudaDataType_t type, int rows, int cols) {
  cublasLtMatrixLayout_t made = nullptr;
  check(r, cublasLtMatrixLayoutCreate(&made, type, rows, cols, rows), "cublasLtMatrixLayoutCreate");
  return made;
}

/// cuBLASLt's preference object, for the length of one request.
struct preference {
  cublasLtMatmulPreference_t of = nullptr;
  explicit preference(rank& r) {
    check(r, cublasLtMatmulPreferenceCreate(&of), "cublasLtMatmulPreferenceCreate");
  }
  preference(const preference&) = delete;
  preference& operator=(const preference&) = delete;
  ~preference() { cublasLtMatmulPreferenceDestroy(of); }
  template <class V>
  void set(rank& r, cublasLtMatmulPreferenceAttributes_t attribute, V value) {
    check(r, cublasLtMatmulPreferenceSetAttribute(of, attribute, &value, sizeof(value)),
          "cublasLtMatmulPreferenceSetAttribute");
  }
};

void choose_algorithm(rank& r, linear_plan& plan, const product_shape& shape) {
  preference wish(r);
  wish.set(r, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, r.workspace_bytes);
  const auto alignment = static_cast<std::uint32_t>(shape.alignment);
  wish.set(r, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment);
  wish.set(r, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment);
  wish.set(r, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment);
  wish.set(r, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  check(r,
        cublasLtMatmulAlgoGetHeuristic(r.blas, plan.description, plan.a, plan.b, plan.d, plan.d, wish.of, 1,
                                       &best, &found),
        "cublasLtMatmulAlgoGetHeuristic");
  if (found == 0)
    fail(r, "linear: cuBLASLt has no algorithm for " + std::to_string(shape.m) + " x " +
                std::to_string(shape.n) + " x " + std::to_string(shape.k) + " at an alignment of " +
                std::to_string(shape.alignment) + " bytes");
  plan.algorithm = best.algo;
}

const linear_plan& plan_for(rank& r, const product_shape& shape) {
  auto& kept = r.plans->by_shape[shape];
  if (kept != nullptr) return *kept;
  auto plan = std::make_unique<linear_plan>();
  check(r, cublasLtMatmulDescCreate(&plan->description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, bool transpose) {
    const cublasOperation_t operation = transpose ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(r, cublasLtMatmulDescSetAttribute(plan->description, attribute, &operation, sizeof(operation)),
          "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_a);
  set(CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_b);
  plan->a =
      shape.transpose_a ? layout_of(r, shape.in, shape.k, shape.m) : layout_of(r, shape.in, shape.m, shape.k);
  plan->b =
      shape.transpose_b ? layout_of(r, shape.in, shape.n, shape.k) : layout_of(r, shape.in, shape.k, shape.n);
  plan->d = layout_of(r, shape.out, shape.m, shape.n);
  choose_algorithm(r, *plan, shape);
  kept = std::move(plan);
  return *kept;
}

void multiply(rank& r, const char* name, void* d, const void* a, const void* b, product_shape shape) {
  shape.alignment = alignment_of(a, b, d);
  const linear_plan& plan = plan_for(r, shape);
  const float one = 1.0f, beta = shape.accumulate ? 1.0f : 0.0f;
  check(r,
        cublasLtMatmul(r.blas, plan.description, &one, a, plan.a, b, plan.b, &beta, d, plan.d, d, plan.d,
                       &plan.algorithm, r.workspace, r.workspace_bytes, r.on(stream::compute)),
        name);
}

}  // namespace

/// y^T (out, tokens) = w (out, in) x^T (in, tokens); in columns w is (in, out), hence transposed.
template <class T>
void linear(rank& r, at y, at x, at w, int tokens, int in, int out) {
  multiply(r, "linear", r.at<T>(y), r.at<T>(w), r.at<T>(x),
           {.m = out,
            .n = tokens,
            .k = in,
            .transpose_a = true,
            .transpose_b = false,
            .accumulate = false,
            .in = type_of<T>,
            .out = type_of<T>,
            .alignment = 0});
}

/// dx^T (in, tokens) = w^T (in, out) dy^T (out, tokens).
template <class T>
void linear_dx(rank& r, at dx, at dy, at w, int tokens, int in, int out, bool accumulate) {
  multiply(r, "linear_dx", r.at<T>(dx), r.at<T>(w), r.at<T>(dy),
           {.m = in,
            .n = tokens,
            .k = out,
            .transpose_a = false,
            .transpose_b = false,
            .accumulate = accumulate,
            .in = type_of<T>,
            .out = type_of<T>,
            .alignment = 0});
}

/// dw^T (in, out) = x^T (in, tokens) dy (tokens, out); in columns dy is (out, tokens), hence transposed. dw
/// is f32.
template <class T>
void linear_dw(rank& r, at dw, at dy, at x, int tokens, int in, int out, bool accumulate) {
  multiply(r, "linear_dw", r.at<float>(dw), r.at<T>(x), r.at<T>(dy),
           {.m = in,
            .n = out,
            .k = tokens,
            .transpose_a = false,
            .transpose_b = true,
            .accumulate = accumulate,
            .in = type_of<T>,
            .out = CUDA_R_32F,
            .alignment = 0});
}

template void linear<float>(rank&, at, at, at, int, int, int);
template void linear<bf16>(rank&, at, at, at, int, int, int);
template void linear_dx<float>(rank&, at, at, at, int, int, int, bool);
template void linear_dx<bf16>(rank&, at, at, at, int, int, int, bool);
template void linear_dw<float>(rank&, at, at, at, int, int, int, bool);
template void linear_dw<bf16>(rank&, at, at, at, int, int, int, bool);

}  // namespace rankc::cuda
