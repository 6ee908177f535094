// SPDX-License-Identifier: Apache-2.0
#include "fault.hpp"

#include <cstdint>

namespace rankc::cuda::test {
namespace {
__global__ void fault(const std::int32_t* tokens) {
  if (*tokens == 1) __trap();
}
}  // namespace

void fault_if_asked(rank& r) {
  fault<<<1, 1, 0, r.on(stream::compute)>>>(r.at<std::int32_t>(r.where->tokens));
}

}  // namespace rankc::cuda::test
