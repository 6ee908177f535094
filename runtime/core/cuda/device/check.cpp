// SPDX-License-Identifier: Apache-2.0
// The sentences of library errors.
#include "check.hpp"

#include <chrono>
#include <thread>

namespace rankc::runtime::cuda {

void check(const program& p) {
  const description& about = p.about;
  if (about.interface_version != runtime::interface_version)
    throw failure::reported(1, "the program was generated for runtime interface " +
                                   std::to_string(about.interface_version) + ", this runtime has " +
                                   std::to_string(runtime::interface_version) + "; generate it again");
  if (about.type == dtype::f64)
    throw failure::reported(
        1, "the program's type is f64, which the cuda target does not have; use f32 or bf16, or the host");
  if (about.trains != (p.train != nullptr))
    throw failure::reported(
        1, std::string("the program's tables say that it ") +
               (about.trains ? "trains, and it has no" : "has forwards alone, and it has a") +
               " training step; generate it again");
  for (const layout& l : about.layouts)
    if (l.lanes.empty() || !l.lanes[0].computes)
      throw failure::reported(1, "lane 0 of every layout must be there and compute");
}

void fail(const rank& r, const std::string& what) {
  std::string place = "rank " + std::to_string(r.index) + ", ";
  place += r.steps_done < 0 ? "install" : "step " + std::to_string(r.steps_done + 1);
  if (*r.action != '\0') place += std::string(", ") + r.action;
  throw failure::reported(70, place + ": " + what);
}

void check(const rank& r, cudaError_t status, const char* call) {
  if (status != cudaSuccess) fail(r, std::string(call) + ": " + cudaGetErrorString(status));
}

void check(const rank& r, ncclResult_t status, ncclComm_t communicator, const std::string& call) {
  const auto until = std::chrono::steady_clock::now() + nccl_patience;
  while (status == ncclInProgress) {
    if (r.stop != nullptr && *r.stop != 0) fail(r, call + ": given up, since another rank has failed");
    if (std::chrono::steady_clock::now() > until)
      fail(r, call + ": not done after " + std::to_string(nccl_patience.count()) +
                  " s; another rank of this communicator does not answer");
    std::this_thread::yield();
    const ncclResult_t asked = ncclCommGetAsyncError(communicator, &status);
    if (asked != ncclSuccess) status = asked;
  }
  if (status == ncclSuccess) return;
  std::string text = call + ": " + ncclGetErrorString(status);
  const char* detail = ncclGetLastError(communicator);
  if (detail != nullptr && *detail != '\0') text += std::string(" (") + detail + ")";
  fail(r, text);
}

void check(const rank& r, cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) fail(r, std::string(call) + ": " + cublasLtGetStatusString(status));
}

int device_attribute(const rank& r, cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(r, cudaGetDevice(&device), "cudaGetDevice");
  check(r, cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

}  // namespace rankc::runtime::cuda
