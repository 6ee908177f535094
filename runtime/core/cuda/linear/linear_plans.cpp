// SPDX-License-Identifier: Apache-2.0
// Creates a GEMM's descriptors, once per shape, and enqueues the GEMM on its lane.
#include "linear_plans.hpp"

#include "../device/check.hpp"
#include "../device/teardown.hpp"
#include "product_choices.hpp"

#include <cstdint>
#include <string>

namespace rankc::runtime::cuda {

linear_plan::~linear_plan() {
  if (d != nullptr) check_teardown(cublasLtMatrixLayoutDestroy(d), "cublasLtMatrixLayoutDestroy");
  if (b != nullptr) check_teardown(cublasLtMatrixLayoutDestroy(b), "cublasLtMatrixLayoutDestroy");
  if (a != nullptr) check_teardown(cublasLtMatrixLayoutDestroy(a), "cublasLtMatrixLayoutDestroy");
  if (description != nullptr)
    check_teardown(cublasLtMatmulDescDestroy(description), "cublasLtMatmulDescDestroy");
}

namespace {

/// The alignment of all addresses for cuBLASLt: 256 bytes, 16 (the widest load), or a smaller power of two.
int alignment_of(const product_operands& with) {
  const auto bits = reinterpret_cast<std::uintptr_t>(with.a) | reinterpret_cast<std::uintptr_t>(with.b) |
                    reinterpret_cast<std::uintptr_t>(with.c) | reinterpret_cast<std::uintptr_t>(with.d);
  const int power = static_cast<int>((bits | 256) & (~(bits | 256) + 1));
  return power > 16 && power < 256 ? 16 : power;
}

/// True if an epilogue may use these addresses. cuBLASLt requires 16 bytes, and rows of aux in multiples of
/// eight.
bool epilogue_allowed(const product_shape& shape, const product_operands& with) {
  const auto misplaced = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 != 0; };
  return !misplaced(with.bias) && !misplaced(with.aux) && (with.aux == nullptr || shape.m % 8 == 0);
}

template <class V>
void set(const lane& on, cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute,
         V value) {
  check(on, cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
}

void set_pointers(const lane& on, const linear_plan& plan, const product_operands& with) {
  if (with.bias != nullptr) set(on, plan.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, with.bias);
  if (with.aux != nullptr) set(on, plan.description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, with.aux);
  if (with.factor_a != nullptr)
    set(on, plan.description, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, with.factor_a);
  if (with.factor_b != nullptr)
    set(on, plan.description, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, with.factor_b);
}

cublasLtMatrixLayout_t layout_of(const lane& on, cudaDataType_t type, int rows, int cols) {
  cublasLtMatrixLayout_t made = nullptr;
  check(on, cublasLtMatrixLayoutCreate(&made, type, rows, cols, rows), "cublasLtMatrixLayoutCreate");
  return made;
}

std::unique_ptr<linear_plan> plan_of(const lane& on, const product_shape& shape,
                                     const product_operands& with) {
  auto plan = std::make_unique<linear_plan>();
  check(on, cublasLtMatmulDescCreate(&plan->description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  const auto operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(on, plan->description, CUBLASLT_MATMUL_DESC_TRANSA, operation(shape.transpose_a));
  set(on, plan->description, CUBLASLT_MATMUL_DESC_TRANSB, operation(shape.transpose_b));
  set(on, plan->description, CUBLASLT_MATMUL_DESC_EPILOGUE, shape.epilogue);
  if (with.bias != nullptr) set(on, plan->description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, shape.out);
  if (with.aux != nullptr)
    set(on, plan->description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{shape.m});
  if (shape.fast_sums) set(on, plan->description, CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
  if (shape.row_factors)
    for (const auto mode : {CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_DESC_B_SCALE_MODE})
      set(on, plan->description, mode, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
  set_pointers(on, *plan, with);
  plan->a = shape.transpose_a ? layout_of(on, shape.in, shape.k, shape.m)
                              : layout_of(on, shape.in, shape.m, shape.k);
  plan->b = shape.transpose_b ? layout_of(on, shape.in_b, shape.n, shape.k)
                              : layout_of(on, shape.in_b, shape.k, shape.n);
  plan->d = layout_of(on, shape.out, shape.m, shape.n);
  plan->choice =
      &on.of->choices->of(*on.of->machine, shape, [&](const std::optional<product_choice>& cached) {
        const bool usable = cached && cached->algorithm && !on.of->about->deterministic &&
                            runs(on, *plan, *cached->algorithm);
        return usable ? *cached : choose_algorithm(on, *plan, shape, with);
      });
  return plan;
}

/// The lane's plan for a GEMM, which is made at its first use; null if cuBLASLt does not support the GEMM.
/// Sets the alignment of the shape.
const linear_plan* planned(const lane& on, product_shape& shape, const product_operands& with) {
  if (!epilogue_allowed(shape, with)) return nullptr;
  shape.alignment = alignment_of(with);
  auto& plan = on.plans->by_shape[shape];
  if (plan == nullptr) plan = plan_of(on, shape, with);
  return plan->choice->algorithm ? plan.get() : nullptr;
}

}  // namespace

cublasStatus_t enqueue(const lane& on, const linear_plan& plan, const cublasLtMatmulAlgo_t& algorithm,
                       const product_shape& shape, const product_operands& with) {
  set_pointers(on, plan, with);
  const float one = 1.0f, beta = shape.add ? 1.0f : 0.0f;
  return cublasLtMatmul(on.of->blas, plan.description, &one, with.a, plan.a, with.b, plan.b, &beta,
                        shape.add ? with.c : with.d, plan.d, with.d, plan.d, &algorithm, on.workspace,
                        on.workspace_bytes, on.stream);
}

float milliseconds_of(const lane& on, product_shape shape, const product_operands& with) {
  const linear_plan* const plan = planned(on, shape, with);
  return plan != nullptr ? plan->choice->milliseconds : 0;
}

bool try_product(const lane& on, const char* name, product_shape shape, const product_operands& with) {
  const linear_plan* const plan = planned(on, shape, with);
  if (plan == nullptr) return false;
  check(on, enqueue(on, *plan, *plan->choice->algorithm, shape, with), name);
  return true;
}

void product(const lane& on, const char* name, const product_shape& shape, const product_operands& with) {
  if (!try_product(on, name, shape, with))
    fail(on, "RC5133: {}: cuBLASLt has no algorithm for {} x {} x {} at an alignment of {} bytes", name,
         shape.m, shape.n, shape.k, alignment_of(with));
}

}  // namespace rankc::runtime::cuda
