// SPDX-License-Identifier: Apache-2.0
// The work split of elementwise kernels over (tokens, width). A thread takes one pack of N columns of R
// neighbouring tokens. So it has R loads in flight and reads per-column data once.
#pragma once
#include "device.cuh"

namespace rankc::runtime::cuda {

inline constexpr int row_group_threads = 256;

/// The calling thread's part. It is empty if `token` is not below tokens.
template <int N, int R>
struct row_group {
  std::size_t token;  // the first of R
  int column;
  __device__ explicit row_group(int width) {
    const unsigned packs = static_cast<unsigned>(width) / N;
    const unsigned item = blockIdx.x * row_group_threads + threadIdx.x;
    token = std::size_t{item / packs} * R;
    column = static_cast<int>(item % packs) * N;
  }
};

template <int N, int R>
unsigned row_group_blocks(int tokens, int width) {
  const std::size_t items = static_cast<std::size_t>(ceil_div(tokens, R)) * (width / N);
  return static_cast<unsigned>(ceil_div(items, row_group_threads));
}

}  // namespace rankc::runtime::cuda
