// SPDX-License-Identifier: Apache-2.0
#include "arena.hpp"

#include "check.hpp"

#include <cstdlib>
#include <string>
#include <utility>

namespace rankc::cuda {

void prepare_nccl() {
  setenv("NCCL_NVLS_ENABLE", "0", 1);
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);
}

arena::arena(const rank& r, std::size_t bytes) {
  prepare_nccl();
  void* made = nullptr;
  registrable_ = ncclMemAlloc(&made, window_bytes(bytes)) == ncclSuccess;
  if (!registrable_) {
    cudaGetLastError();
    const std::string call = "arena of " + std::to_string(bytes) + " bytes: cudaMalloc";
    check(r, cudaMalloc(&made, bytes), call.c_str());
  }
  data_ = static_cast<std::byte*>(made);
}

arena::~arena() {
  if (data_ == nullptr) return;
  if (registrable_) ncclMemFree(data_);
  else cudaFree(data_);
}

arena::arena(arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), registrable_(other.registrable_) {}

arena& arena::operator=(arena&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(registrable_, other.registrable_);
  return *this;
}

}  // namespace rankc::cuda
