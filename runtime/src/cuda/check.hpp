// SPDX-License-Identifier: Apache-2.0
// Every library call of the CUDA runtime goes through one of these: an error becomes a failure (70) that
// names rank, step and action, then the call and the library's own text.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <string>

namespace rankc::cuda {

/// Throw failure (70): "rank 2, step 17, B0: " and `what`.
[[noreturn]] void fail(const rank&, const std::string& what);

void check(const rank&, cudaError_t, const char* call);
void check(const rank&, ncclResult_t, ncclComm_t, const std::string& call);
void check(const rank&, cublasStatus_t, const char* call);

}  // namespace rankc::cuda
