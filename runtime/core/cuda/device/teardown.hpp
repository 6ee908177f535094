// SPDX-License-Identifier: Apache-2.0
// The status of calls that free resources. A destructor may not throw, and one failure must not stop the
// calls after it. All calls that fail become one line.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>

namespace rankc::runtime::cuda {

/// Counts a failed call. `answer` is a text of static lifetime.
void teardown_failed(const char* call, const char* answer) noexcept;

/// While the process exits, CUDA may already be unloaded; the driver then frees all resources.
inline void check_teardown(cudaError_t status, const char* call) noexcept {
  if (status != cudaSuccess && status != cudaErrorCudartUnloading)
    teardown_failed(call, cudaGetErrorString(status));
}
/// Calls of communicators that do not block may still be in progress when they return.
inline void check_teardown(ncclResult_t status, const char* call) noexcept {
  if (status != ncclSuccess && status != ncclInProgress) teardown_failed(call, ncclGetErrorString(status));
}
inline void check_teardown(cublasStatus_t status, const char* call) noexcept {
  if (status != CUBLAS_STATUS_SUCCESS) teardown_failed(call, cublasLtGetStatusString(status));
}

/// The failed calls: their number, and the first of them.
class failed_calls {
 public:
  void add(const char* call, const char* answer) noexcept;
  /// Empty if no call failed.
  std::string line() const;

 private:
  mutable std::mutex mutex_;
  std::size_t count_ = 0;
  const char *first_ = "", *answer_ = "";
};

/// During its lifetime it collects the failed calls of this thread, and its destructor gives their line to
/// `to`. Failed calls outside a teardown_log are reported on stderr when the process exits, after the line of
/// the failure that ended the run.
class teardown_log {
 public:
  explicit teardown_log(const std::function<void(const char* line)>& to) noexcept;
  ~teardown_log();
  teardown_log(const teardown_log&) = delete;
  teardown_log& operator=(const teardown_log&) = delete;

 private:
  const std::function<void(const char* line)>& to_;
  failed_calls calls_;
  failed_calls* const before_;
};

}  // namespace rankc::runtime::cuda
