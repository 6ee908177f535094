// SPDX-License-Identifier: Apache-2.0
// The texts of library errors.
#include "check.hpp"

#include "../../check_tables.hpp"

#include <chrono>
#include <thread>

namespace rankc::runtime::cuda {

void check(const program& p) {
  const description& about = p.about;
  check_version(about);
  if (about.type == dtype::f64)
    throw failure(
        1,
        "RC5100: program {} has the type f64; the cuda target computes in f32 or bf16: use one of these, or "
        "the host target",
        about.name);
  check_training_step(about, p.train != nullptr);
  check_first_lanes(about);
}

void fail_with(const rank& r, const std::string& text) {
  std::string place = "rank " + std::to_string(r.index) + ", ";
  place += r.steps_done < 0 ? "install" : "step " + std::to_string(r.steps_done + 1);
  if (*r.action != '\0') place += std::string(", ") + r.action;
  throw failure::reported(70, place + ": " + text);
}

void fail_in_call(const rank& r, const std::string& call, const std::string& answer) {
  fail(r, "RC5101: {} failed: {}", call, answer);
}

failure no_pinned_memory() { return failure(70, "RC5102: pinned memory could not be allocated"); }

failure unusable(int exit_code, int device, cudaError_t status) {
  return failure(exit_code, "RC5103: device {} cannot be used: {}", device, cudaGetErrorString(status));
}

void check(const rank& r, cudaError_t status, const char* call) {
  if (status != cudaSuccess) fail_in_call(r, call, cudaGetErrorString(status));
}

void check(const rank& r, ncclResult_t status, ncclComm_t communicator, const std::string& call) {
  const auto until = std::chrono::steady_clock::now() + nccl_patience;
  while (status == ncclInProgress) {
    if (r.stop != nullptr && *r.stop != 0)
      fail(r, "RC5104: {} was aborted, because another rank failed", call);
    if (std::chrono::steady_clock::now() > until)
      fail(r, "RC5105: {} was not done after {} s; another rank of this communicator does not answer", call,
           nccl_patience.count());
    std::this_thread::yield();
    const ncclResult_t asked = ncclCommGetAsyncError(communicator, &status);
    if (asked != ncclSuccess) status = asked;
  }
  if (status == ncclSuccess) return;
  std::string text = ncclGetErrorString(status);
  const char* detail = ncclGetLastError(communicator);
  if (detail != nullptr && *detail != '\0') text += std::string(" (") + detail + ")";
  fail_in_call(r, call, text);
}

void check(const rank& r, cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) fail_in_call(r, call, cublasLtGetStatusString(status));
}

int device_attribute(const rank& r, cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(r, cudaGetDevice(&device), "cudaGetDevice");
  check(r, cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

}  // namespace rankc::runtime::cuda
