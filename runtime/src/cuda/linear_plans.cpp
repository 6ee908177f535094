// SPDX-License-Identifier: Apache-2.0
// A product's descriptors, made once per shape, and its way into the compute stream.
#include "linear_plans.hpp"

#include "check.hpp"

#include <cstdint>
#include <string>

namespace rankc::cuda {

linear_plan::~linear_plan() {
  if (d != nullptr) cublasLtMatrixLayoutDestroy(d);
  if (b != nullptr) cublasLtMatrixLayoutDestroy(b);
  if (a != nullptr) cublasLtMatrixLayoutDestroy(a);
  if (description != nullptr) cublasLtMatmulDescDestroy(description);
}

namespace {

/// What cuBLASLt may assume of all addresses: 256 bytes, 16 (the widest load), or the power of two below.
int alignment_of(const product_operands& on) {
  const auto bits = reinterpret_cast<std::uintptr_t>(on.a) | reinterpret_cast<std::uintptr_t>(on.b) |
                    reinterpret_cast<std::uintptr_t>(on.c) | reinterpret_cast<std::uintptr_t>(on.d);
  const int power = static_cast<int>((bits | 256) & (~(bits | 256) + 1));
  return power > 16 && power < 256 ? 16 : power;
}

/// Whether an epilogue may touch these: cuBLASLt asks for 16 bytes, and for rows of aux in eights.
bool epilogue_allowed(const product_shape& shape, const product_operands& on) {
  const auto misplaced = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 != 0; };
  return !misplaced(on.bias) && !misplaced(on.aux) && (on.aux == nullptr || shape.m % 8 == 0);
}

template <class V>
void set(rank& r, cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, V value) {
  check(r, cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
}

void set_pointers(rank& r, const linear_plan& plan, const product_operands& on) {
  if (on.bias != nullptr) set(r, plan.description, CUBLASLT_MATMUL_DESC_BIAS_POINTER, on.bias);
  if (on.aux != nullptr) set(r, plan.description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, on.aux);
}

cublasLtMatrixLayout_t layout_of(rank& r, cudaDataType_t type, int rows, int cols) {
  cublasLtMatrixLayout_t made = nullptr;
  check(r, cublasLtMatrixLayoutCreate(&made, type, rows, cols, rows), "cublasLtMatrixLayoutCreate");
  return made;
}

std::unique_ptr<linear_plan> plan_of(rank& r, const product_shape& shape, const product_operands& on) {
  auto plan = std::make_unique<linear_plan>();
  check(r, cublasLtMatmulDescCreate(&plan->description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  const auto operation = [](bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; };
  set(r, plan->description, CUBLASLT_MATMUL_DESC_TRANSA, operation(shape.transpose_a));
  set(r, plan->description, CUBLASLT_MATMUL_DESC_TRANSB, operation(shape.transpose_b));
  set(r, plan->description, CUBLASLT_MATMUL_DESC_EPILOGUE, shape.epilogue);
  if (on.bias != nullptr) set(r, plan->description, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, shape.out);
  if (on.aux != nullptr)
    set(r, plan->description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{shape.m});
  set_pointers(r, *plan, on);
  plan->a =
      shape.transpose_a ? layout_of(r, shape.in, shape.k, shape.m) : layout_of(r, shape.in, shape.m, shape.k);
  plan->b =
      shape.transpose_b ? layout_of(r, shape.in, shape.n, shape.k) : layout_of(r, shape.in, shape.k, shape.n);
  plan->d = layout_of(r, shape.out, shape.m, shape.n);
  plan->algorithm = choose_algorithm(r, *plan, shape, on);
  return plan;
}

}  // namespace

cublasStatus_t enqueue(rank& r, const linear_plan& plan, const cublasLtMatmulAlgo_t& algorithm,
                       const product_shape& shape, const product_operands& on) {
  set_pointers(r, plan, on);
  const float one = 1.0f, beta = shape.add ? 1.0f : 0.0f;
  return cublasLtMatmul(r.blas, plan.description, &one, on.a, plan.a, on.b, plan.b, &beta,
                        shape.add ? on.c : on.d, plan.d, on.d, plan.d, &algorithm, r.workspace,
                        r.workspace_bytes, r.on(stream::compute));
}

bool try_product(rank& r, const char* name, product_shape shape, const product_operands& on) {
  if (!epilogue_allowed(shape, on)) return false;
  shape.alignment = alignment_of(on);
  auto& plan = r.plans->by_shape[shape];
  if (plan == nullptr) plan = plan_of(r, shape, on);
  if (!plan->algorithm) return false;
  check(r, enqueue(r, *plan, *plan->algorithm, shape, on), name);
  return true;
}

void product(rank& r, const char* name, const product_shape& shape, const product_operands& on) {
  if (!try_product(r, name, shape, on))
    fail(r, std::string(name) + ": cuBLASLt has no algorithm for " + std::to_string(shape.m) + " x " +
                std::to_string(shape.n) + " x " + std::to_string(shape.k) + " at an alignment of " +
                std::to_string(alignment_of(on)) + " bytes");
}

}  // namespace rankc::cuda
