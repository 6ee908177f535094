// SPDX-License-Identifier: Apache-2.0
// The NCCL communicators of a program whose ranks are threads of one process, rank i on device i.
#pragma once
#include <rankc/runtime/cuda/context.hpp>

#include <memory>
#include <vector>

namespace rankc::cuda {

/// Thread blocks that a communicator may take of a GPU. Five communication streams may be under way at once,
/// and their kernels wait for each other across ranks: all must find room on the 132 multiprocessors of an
/// H200.
inline constexpr int most_blocks = 16;

/// Makes all communicators in the description's order, and gives each rank its own by role.
class communicators {
 public:
  /// Errors: failure (70) with NCCL's text.
  communicators(const description&, const std::vector<std::unique_ptr<context>>& ranks);
  ~communicators();
  communicators(const communicators&) = delete;
  communicators& operator=(const communicators&) = delete;

  /// End every operation under way on every rank, with an error or half done. Nothing can be sent afterwards.
  void abort();

 private:
  struct membership {
    ncclComm_t of;
    int device;
  };
  std::vector<membership> all_;
  bool aborted_ = false;
};

}  // namespace rankc::cuda
