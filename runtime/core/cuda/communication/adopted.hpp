// SPDX-License-Identifier: Apache-2.0
// Communicators that an application has made, as the lanes of a rank use them.
#pragma once
#include <rankc/runtime/cuda/context.hpp>

#include <span>
#include <vector>

namespace rankc::runtime::cuda {

/// A sum of bf16 whose terms are each times one (communicate.cpp).
ncclRedOp_t scaled_sum(const rank&, ncclComm_t, const std::string& name);

class adopted {
 public:
  /// Gives each lane its own of `given`, which are by the description's order.
  /// Errors: failure (1) naming the communicator that is not there, or has other ranks than the plan's.
  adopted(context&, std::span<const ncclComm_t> given);
  ~adopted();
  adopted(const adopted&) = delete;
  adopted& operator=(const adopted&) = delete;

  /// Make no more calls of the communicators, which the application has aborted after a failure. NCCL frees
  /// the sums with them.
  void abandon() { links_.clear(); }

 private:
  std::vector<const lane_link*> links_;
};

}  // namespace rankc::runtime::cuda
