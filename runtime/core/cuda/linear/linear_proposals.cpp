// SPDX-License-Identifier: Apache-2.0
// The algorithms that cuBLASLt has for a GEMM. Its heuristics propose about eight. Each has variants that
// they do not propose and that are up to a fifth faster (H100, 65536 x 768 -> 2304 with bias: 0.352 ms, their
// best 0.433).
#include "../device/check.hpp"
#include "linear_plans.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace rankc::runtime::cuda {
namespace {

constexpr int most_proposals = 24;
constexpr std::uint32_t most_variants = 16;
constexpr std::uint32_t orders = 5;

/// cuBLASLt's preference object, for one request.
struct preference {
  cublasLtMatmulPreference_t of = nullptr;
  explicit preference(const lane& on) {
    check(on, cublasLtMatmulPreferenceCreate(&of), "cublasLtMatmulPreferenceCreate");
  }
  preference(const preference&) = delete;
  preference& operator=(const preference&) = delete;
  ~preference() { check_teardown(cublasLtMatmulPreferenceDestroy(of), "cublasLtMatmulPreferenceDestroy"); }
  template <class V>
  void set(const lane& on, cublasLtMatmulPreferenceAttributes_t attribute, V value) {
    check(on, cublasLtMatmulPreferenceSetAttribute(of, attribute, &value, sizeof(value)),
          "cublasLtMatmulPreferenceSetAttribute");
  }
};

/// True if the partial sums of a split k are added in f32 in a fixed order, or k is not split. They must not
/// be added in the type of d.
bool sums_in_f32(const cublasLtMatmulAlgo_t& algorithm) {
  std::uint32_t scheme = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::size_t written = 0;
  if (cublasLtMatmulAlgoConfigGetAttribute(&algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, &scheme,
                                           sizeof(scheme), &written) != CUBLAS_STATUS_SUCCESS)
    return false;
  return scheme == CUBLASLT_REDUCTION_SCHEME_NONE || scheme == CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
}

/// The algorithm with each other value of an attribute below `end`.
std::vector<cublasLtMatmulAlgo_t> with_others(const lane& on, const linear_plan& plan,
                                              const cublasLtMatmulAlgo_t& of,
                                              cublasLtMatmulAlgoConfigAttributes_t attribute,
                                              std::uint32_t end) {
  std::vector<cublasLtMatmulAlgo_t> others;
  for (std::uint32_t value = 0; value < end; ++value) {
    cublasLtMatmulAlgo_t other = of;
    if (cublasLtMatmulAlgoConfigSetAttribute(&other, attribute, &value, sizeof(value)) !=
        CUBLAS_STATUS_SUCCESS)
      continue;
    if (std::memcmp(&other, &of, sizeof(of)) != 0 && runs(on, plan, other)) others.push_back(other);
  }
  return others;
}

}  // namespace

std::vector<cublasLtMatmulAlgo_t> proposals(const lane& on, const linear_plan& plan,
                                            const product_shape& shape) {
  preference wish(on);
  wish.set(on, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{on.workspace_bytes});
  wish.set(on, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
  const auto alignment = static_cast<std::uint32_t>(shape.alignment);
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    wish.set(on, attribute, alignment);
  std::vector<cublasLtMatmulHeuristicResult_t> results(most_proposals);
  int found = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(on.of->blas, plan.description, plan.a, plan.b, plan.d, plan.d, wish.of,
                                     most_proposals, results.data(), &found);
  // An epilogue may be unknown for these types: NOT_SUPPORTED, or INVALID_VALUE for its attributes.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) return {};
  check(on, status, "cublasLtMatmulAlgoGetHeuristic");
  std::vector<cublasLtMatmulAlgo_t> usable;
  for (int i = 0; i < found; ++i)
    if (results[i].state == CUBLAS_STATUS_SUCCESS && sums_in_f32(results[i].algo))
      usable.push_back(results[i].algo);
  return usable;
}

std::vector<cublasLtMatmulAlgo_t> other_variants(const lane& on, const linear_plan& plan,
                                                 const cublasLtMatmulAlgo_t& of) {
  std::uint32_t last = 0;
  std::size_t written = 0;
  if (cublasLtMatmulAlgoCapGetAttribute(&of, CUBLASLT_ALGO_CAP_CUSTOM_OPTION_MAX, &last, sizeof(last),
                                        &written) != CUBLAS_STATUS_SUCCESS)
    return {};
  return with_others(on, plan, of, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, std::min(last + 1, most_variants));
}

std::vector<cublasLtMatmulAlgo_t> other_orders(const lane& on, const linear_plan& plan,
                                               const cublasLtMatmulAlgo_t& of) {
  return with_others(on, plan, of, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, orders);
}

bool runs(const lane& on, const linear_plan& plan, const cublasLtMatmulAlgo_t& algorithm) {
  cublasLtMatmulHeuristicResult_t result{};
  return cublasLtMatmulAlgoCheck(on.of->blas, plan.description, plan.a, plan.b, plan.d, plan.d, &algorithm,
                                 &result) == CUBLAS_STATUS_SUCCESS &&
         result.workspaceSize <= on.workspace_bytes;
}

}  // namespace rankc::runtime::cuda
