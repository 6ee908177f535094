// SPDX-License-Identifier: Apache-2.0
#include "buffer.hpp"

#include "check.hpp"
#include "teardown.hpp"

#include <string>
#include <utility>

namespace rankc::runtime::cuda {
namespace {

constexpr std::size_t alignment = 256;  // guaranteed by cudaMalloc

template <auto Allocate, auto Free>
class resource final : public std::pmr::memory_resource {
 public:
  explicit resource(const char* free) : free_(free) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t) override {
    void* made = nullptr;
    if (Allocate(&made, bytes) == cudaSuccess) return made;
    cudaGetLastError();
    return nullptr;
  }
  void do_deallocate(void* p, std::size_t, std::size_t) override { check_teardown(Free(p), free_); }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  const char* const free_;  // the name of `Free`
};

cudaError_t on_device(void** to, std::size_t bytes) { return cudaMalloc(to, bytes); }
cudaError_t pinned(void** to, std::size_t bytes) {
  return cudaHostAlloc(to, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
}

}  // namespace

std::pmr::memory_resource* device_memory() {
  static resource<on_device, cudaFree> all("cudaFree");
  return &all;
}

std::pmr::memory_resource* pinned_memory() {
  static resource<pinned, cudaFreeHost> all("cudaFreeHost");
  return &all;
}

buffer::buffer(const rank& r, std::pmr::memory_resource* from, std::size_t bytes, const char* what)
    : from_(from), data_(from->allocate(bytes, alignment)), bytes_(bytes) {
  if (data_ == nullptr) fail(r, "RC5106: {} bytes of memory for {} could not be allocated", bytes, what);
}

buffer::~buffer() {
  if (data_ != nullptr) from_->deallocate(data_, bytes_, alignment);
}

buffer::buffer(buffer&& other) noexcept
    : from_(other.from_), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

buffer& buffer::operator=(buffer&& other) noexcept {
  std::swap(from_, other.from_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace rankc::runtime::cuda
