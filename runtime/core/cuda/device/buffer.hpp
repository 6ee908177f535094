// SPDX-License-Identifier: Apache-2.0
// Memory of a rank outside its arena: on its device, or pinned on the host. An application that embeds the
// rank may provide it.
#pragma once
#include <rankc/runtime/cuda/rank.hpp>

#include <cstddef>
#include <memory_resource>

namespace rankc::runtime::cuda {

/// cudaMalloc on the current device, and pinned memory that all devices map. Both return null if the memory
/// is exhausted.
std::pmr::memory_resource* device_memory();
std::pmr::memory_resource* pinned_memory();

class buffer {
 public:
  buffer() = default;
  /// Allocates `bytes` bytes.
  /// Errors: failure (70) that names `what` and the bytes.
  buffer(const rank&, std::pmr::memory_resource* from, std::size_t bytes, const char* what);
  ~buffer();
  buffer(buffer&&) noexcept;
  buffer& operator=(buffer&&) noexcept;

  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  std::pmr::memory_resource* from_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace rankc::runtime::cuda
