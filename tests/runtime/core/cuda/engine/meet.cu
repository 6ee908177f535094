// SPDX-License-Identifier: Apache-2.0
#include "meet.hpp"

namespace rankc::runtime::cuda::test {
namespace {

__device__ unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
  return now;
}

__global__ void wait_for_another(unsigned* counter, float* met) {
  const unsigned long long until = nanoseconds() + 500'000'000;
  atomicAdd(counter, 1u);
  while (atomicAdd(counter, 0u) < 2 && nanoseconds() < until) {
  }
  *met = atomicAdd(counter, 0u) >= 2 ? 1.0f : 0.0f;
}

__global__ void busy(unsigned long long duration) {
  const unsigned long long until = nanoseconds() + duration;
  while (nanoseconds() < until) {
  }
}

}  // namespace

void meet(const lane& on, at counter, at met) {
  wait_for_another<<<1, 1, 0, on.stream>>>(on.at<unsigned>(counter), on.at<float>(met));
}

void spin(const lane& on, int microseconds) { busy<<<1, 1, 0, on.stream>>>(1000ull * microseconds); }

}  // namespace rankc::runtime::cuda::test
