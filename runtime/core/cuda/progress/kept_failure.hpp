// SPDX-License-Identifier: Apache-2.0
// The failure of a call in a destructor. It is kept, and the next function that may throw throws it.
#pragma once
#include <exception>
#include <utility>

namespace rankc::runtime::cuda {

class kept_failure {
 public:
  void keep_of(auto&& call) noexcept {
    try {
      call();
    } catch (...) {
      if (first_ == nullptr) first_ = std::current_exception();
    }
  }
  void throw_kept() {
    if (first_ != nullptr) std::rethrow_exception(std::exchange(first_, nullptr));
  }
  void forget() noexcept { first_ = nullptr; }

 private:
  std::exception_ptr first_;
};

}  // namespace rankc::runtime::cuda
