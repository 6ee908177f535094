// SPDX-License-Identifier: Apache-2.0
// Lookup of embedding rows.
#include <rankc/runtime/cuda/kernels.hpp>

#include "../device/device.cuh"

namespace rankc::runtime::cuda {
namespace {

constexpr int packs_ahead = 4;  // packs that a thread loads before it stores the first

/// y[n] = table[id[n] - first], or 0 if this rank does not hold that row. A warp processes a token.
/// Shapes: y (tokens, width), ids (tokens), table (rows, width).
template <int N, class T>
__global__ void __launch_bounds__(block_size)
    look_up(T* y, const std::int32_t* ids, const T* table, int tokens, int rows, int width, int first) {
  const std::size_t token = std::size_t{blockIdx.x} * (block_size / warp_size) + threadIdx.x / warp_size;
  if (token >= tokens) return;
  const int row = ids[token] - first;
  const bool held = row >= 0 && row < rows;
  table += static_cast<std::size_t>(held ? row : 0) * width;
  y += token * width;
  constexpr int step = warp_size * N;
  for (int c = static_cast<int>(threadIdx.x % warp_size) * N; c < width; c += packs_ahead * step) {
    pack<T, N> out[packs_ahead];
#pragma unroll
    for (int k = 0; k < packs_ahead; ++k) {
      if (c + k * step >= width) break;
      if (held) out[k] = load<T, N>(table + c + k * step);
      else
        for (int i = 0; i < N; ++i) out[k].element[i] = from_float<T>(0.0f);
    }
#pragma unroll
    for (int k = 0; k < packs_ahead; ++k)
      if (c + k * step < width) store(y + c + k * step, out[k]);
  }
}

}  // namespace

template <class T>
void embedding(const lane& on, at y, at ids, at table, int tokens, int rows, int width, int first) {
  T *to = on.at<T>(y), *row = on.at<T>(table);
  const std::int32_t* id = on.at<std::int32_t>(ids);
  constexpr int n = wide<T>;
  const int blocks = ceil_div(tokens, block_size / warp_size);
  if (packable<n>(width, to, row))
    launch(on, "embedding", look_up<n, T>, blocks, block_size, 0, to, id, row, tokens, rows, width, first);
  else launch(on, "embedding", look_up<1, T>, blocks, block_size, 0, to, id, row, tokens, rows, width, first);
}

template void embedding<float>(const lane&, at, at, at, int, int, int, int);
template void embedding<bf16>(const lane&, at, at, at, int, int, int, int);

}  // namespace rankc::runtime::cuda
