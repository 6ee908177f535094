// SPDX-License-Identifier: Apache-2.0
// The checks of all library calls of the CUDA runtime. An error becomes a failure (70) that names rank, step
// and action, then the call and the library's own text.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <chrono>
#include <string>
#include <type_traits>

namespace rankc::runtime::cuda {

/// The time limit for a call of NCCL until the other ranks of its communicator have answered.
inline constexpr std::chrono::seconds nccl_patience{60};

/// Refuses tables that this target cannot run.
/// Errors: failure (1).
void check(const program&);

/// Throws failure (70): "rank 2, step 17, B0: " and a sentence.
[[noreturn]] void fail_with(const rank&, const std::string& text);
template <class... Arguments>
[[noreturn]] void fail(const rank& r, sentence<std::type_identity_t<Arguments>...> about,
                       const Arguments&... arguments) {
  fail_with(r, say<Arguments...>(about, arguments...));
}

/// Throws failure (70) for a call of a library, with the library's text.
[[noreturn]] void fail_in_call(const rank&, const std::string& call, const std::string& answer);

/// The failure (70) for a failed allocation of pinned memory.
failure no_pinned_memory();

/// The failure for a device that cannot be used.
failure unusable(int exit_code, int device, cudaError_t);

void check(const rank&, cudaError_t, const char* call);
/// Waits for a call of a non-blocking communicator until it is done, has taken too long, or another rank has
/// failed.
void check(const rank&, ncclResult_t, ncclComm_t, const std::string& call);
void check(const rank&, cublasStatus_t, const char* call);

/// An attribute of the calling thread's device.
int device_attribute(const rank&, cudaDeviceAttr);

}  // namespace rankc::runtime::cuda
