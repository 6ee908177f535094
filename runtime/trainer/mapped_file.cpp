// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/mapped_file.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/trainer/bus_error.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rankc::runtime {

mapped_file::mapped_file(const std::filesystem::path& file) : name_(file.string()) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about{};
  int wrong = descriptor >= 0 && fstat(descriptor, &about) == 0 ? 0 : errno;
  const bool regular = wrong == 0 && S_ISREG(about.st_mode);
  if (regular && about.st_size > 0) {
    size_ = static_cast<std::size_t>(about.st_size);
    data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (data_ == MAP_FAILED) wrong = errno;
  }
  if (descriptor >= 0) close(descriptor);
  if (wrong != 0) {
    data_ = nullptr;
    throw failure(1, "RC6101: {} cannot be read: {}", name_, std::strerror(wrong));
  }
  if (!regular)
    throw failure(1, "RC6102: {} is not a regular file; tokens are read from files and folders", name_);
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
