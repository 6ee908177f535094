// SPDX-License-Identifier: Apache-2.0
// Words by which kernels of several GPUs signal each other. One kernel stores a number; another polls until
// the number is reached, or until the host reports that a rank has failed.
#pragma once
#include "../device/device.cuh"

namespace rankc::runtime::cuda {

using word = unsigned long long;

__device__ inline word load_acquire(const word* from) {
  word x;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(x) : "l"(from) : "memory");
  return x;
}
__device__ inline void store_release(word* to, word x) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(to), "l"(x) : "memory");
}

/// Waits until another GPU's word has reached `count`. Returns false if a rank has failed.
__device__ inline bool reached(const word* at, word count, const volatile unsigned* stop) {
  for (unsigned looks = 1; load_acquire(at) < count; ++looks) {
    if (looks % 256 == 0 && *stop != 0) return false;
    __nanosleep(40);
  }
  return true;
}

}  // namespace rankc::runtime::cuda
