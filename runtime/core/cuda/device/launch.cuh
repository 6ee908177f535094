// SPDX-License-Identifier: Apache-2.0
// Launches a kernel on its lane and checks its error under the kernel's name.
#pragma once
#include "check.hpp"

#include <cuda_runtime.h>

#include <utility>

namespace rankc::runtime::cuda {

inline constexpr int block_size = 256;  // threads of a block, for kernels without another number

/// Launches `kernel` on its lane.
/// Units: `shared` in bytes of dynamic shared memory. Above 40 KiB the kernel is opted in first; 48 KiB,
/// static shared memory included, need no opt-in.
template <class... Parameters, class... Arguments>
void launch(const lane& on, const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            std::size_t shared, Arguments... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  if (shared > 40 * 1024)
    check(on,
          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)),
          name);
  kernel<<<grid, block, shared, on.stream>>>(static_cast<Parameters>(arguments)...);
  check(on, cudaGetLastError(), name);
}

/// The block's dynamic shared memory.
__device__ inline float* dynamic_shared() {
  extern __shared__ __align__(16) float shared_floats[];
  return shared_floats;
}

}  // namespace rankc::runtime::cuda
