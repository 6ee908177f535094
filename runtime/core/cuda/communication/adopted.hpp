// SPDX-License-Identifier: Apache-2.0
// Communicators that an application has made, for the lanes of a rank.
#pragma once
#include <rankc/runtime/cuda/context.hpp>

#include <span>
#include <vector>

namespace rankc::runtime::cuda {

/// A bf16 sum that multiplies each term by one (communicate.cpp).
ncclRedOp_t scaled_sum(const rank&, ncclComm_t, const std::string& name);

class adopted {
 public:
  /// Gives each lane its communicators from `given`, which are in the description's order.
  /// Errors: failure (1) that names a communicator that is missing or has other ranks than the plan's.
  adopted(context&, std::span<const ncclComm_t> given);
  ~adopted();
  adopted(const adopted&) = delete;
  adopted& operator=(const adopted&) = delete;

  /// Stops using the communicators, which the application has aborted after a failure. NCCL frees the
  /// reduction ops with them.
  void abandon() { links_.clear(); }

 private:
  std::vector<const lane_link*> links_;
};

}  // namespace rankc::runtime::cuda
