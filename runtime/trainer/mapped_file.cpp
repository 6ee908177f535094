// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/mapped_file.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/input_file.hpp>
#include <rankc/trainer/bus_error.hpp>

#include <sys/mman.h>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rankc::runtime {

mapped_file::mapped_file(const std::filesystem::path& file) : name_(file.string()) {
  const input_file in(file);
  std::string problem = in.problem();
  if (problem.empty() && in.size() > 0) {
    void* const data = mmap(nullptr, in.size(), PROT_READ, MAP_PRIVATE, in.descriptor(), 0);
    if (data == MAP_FAILED) problem = std::strerror(errno);
    else data_ = data;
  }
  if (!problem.empty()) throw failure(1, "RC6101: {} cannot be read: {}", name_, problem);
  size_ = in.size();
  if (data_ != nullptr) place_ = enter_mapped(static_cast<const char*>(data_), size_, name_);
}

mapped_file::mapped_file(mapped_file&& other) noexcept
    : name_(std::move(other.name_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      place_(std::exchange(other.place_, nullptr)) {}

mapped_file::~mapped_file() {
  leave_mapped(place_);
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace rankc::runtime
