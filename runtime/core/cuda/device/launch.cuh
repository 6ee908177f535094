// SPDX-License-Identifier: Apache-2.0
// How a kernel is launched: on its lane, with its error checked under the kernel's name.
#pragma once
#include "check.hpp"

#include <cuda_runtime.h>

#include <utility>

namespace rankc::runtime::cuda {

inline constexpr int block_size = 256;  // threads of a block, of kernels that need no other number

/// Launch `kernel` on its lane.
/// Units: `shared` in bytes of dynamic shared memory; above 40 KiB the kernel is opted in first, for it may
///        have 48 KiB without, its static shared memory included.
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
