// SPDX-License-Identifier: Apache-2.0
#include "arena.hpp"

#include <cstdlib>

namespace rankc::runtime::cuda {

void prepare_nccl() {
  setenv("NCCL_NVLS_ENABLE", "0", 1);
  setenv("NCCL_RUNTIME_CONNECT", "0", 0);
}

arena::arena(const rank& r, std::size_t bytes, std::pmr::memory_resource* memory) {
  if (memory == nullptr) {
    prepare_nccl();
    void* made = nullptr;
    if (ncclMemAlloc(&made, window_bytes(bytes)) == ncclSuccess) nccl_.reset(static_cast<std::byte*>(made));
    cudaGetLastError();
  }
  if (nccl_ == nullptr) other_ = buffer(r, memory != nullptr ? memory : device_memory(), bytes, "arena");
}

}  // namespace rankc::runtime::cuda
