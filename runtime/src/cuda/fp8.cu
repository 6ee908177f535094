// SPDX-License-Identifier: Apache-2.0
// What makes tensors of eight bits: a pass for the largest number, in parts, and one that rounds tiles and leaves them by rows
// and by columns. Tiles are taken from the last to the first, so that what the first pass read last is still in the cache.
#include <rankc/runtime/cuda/kernels.hpp>

#include "device.cuh"

#include <cuda_fp8.h>
#include <rankc/runtime/fp8.hpp>

#include <cstdint>
#include <type_traits>

namespace rankc::cuda {
namespace {

using runtime::fp8_layout;

constexpr int threads = 256;
constexpr unsigned most_parts = fp8_layout::most_maxima;

/// The largest size of each part of x, which blocks take in turns. Shapes: maxima (blocks). Units: `count` in packs.
template <int N, class T>
__global__ void __launch_bounds__(threads) part_maxima(float* maxima, const T* x, std::size_t count) {
  float most = 0.0f;
  for (std::size_t i = std::size_t{blockIdx.x} * threads + threadIdx.x; i < count; i += std::size_t{gridDim.x} * threads) {
    const auto some = load<T, N>(x + i * N);
    for (int k = 0; k < N; ++k) most = fmaxf(most, fabsf(to_float(some.element[k])));
  }
  most = block_max(most);
  if (threadIdx.x == 0) maxima[blockIdx.x] = most;
}

constexpr int tile = 128;             // rows, and columns
constexpr int chunk = 16;             // rows that a thread turns at once
constexpr int pitch = tile + chunk;   // bytes from one row of a tile in shared memory to the next

template <class F>
constexpr __nv_fp8_interpretation_t format = std::is_same_v<F, runtime::e4m3> ? __NV_E4M3 : __NV_E5M2;

/// Four rows of four bytes as four columns.
__device__ inline void turn(unsigned (&w)[4]) {
  const unsigned a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
  const unsigned c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
  w[0] = __byte_perm(a, b, 0x5410);
  w[1] = __byte_perm(a, b, 0x7632);
  w[2] = __byte_perm(c, d, 0x5410);
  w[3] = __byte_perm(c, d, 0x7632);
}

/// q = round(x * scale) by rows, and by columns; factor = 1 / scale. Shapes: q, x (rows, columns), by_columns (columns, rows),
/// maxima (parts); rows and columns are multiples of 16.
template <class F, class T>
__global__ void __launch_bounds__(threads) round_tiles(unsigned char* q, unsigned char* by_columns, float* factor, const float* maxima,
                                                       const T* x, int parts, int rows, int columns) {
  __shared__ alignas(16) unsigned char straight[tile * pitch], turned[tile * pitch];
  float most = 0.0f;
  for (int i = threadIdx.x; i < parts; i += threads) most = fmaxf(most, maxima[i]);
  const float scale = __fdiv_rn(static_cast<float>(F::largest), fmaxf(block_max(most), 1e-12f));
  const unsigned across = gridDim.x;
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *factor = __frcp_rn(scale);
  const int column0 = static_cast<int>(across - 1 - blockIdx.x) * tile, row0 = static_cast<int>(gridDim.y - 1 - blockIdx.y) * tile;

  constexpr int each = 8, to_a_row = tile / each;
  const int c = threadIdx.x % to_a_row * each;
  for (int r = threadIdx.x / to_a_row; r < tile; r += threads / to_a_row) {
    if (row0 + r >= rows || column0 + c >= columns) continue;
    const std::size_t at = std::size_t(row0 + r) * columns + column0 + c;
    float in[each];
    for (int half = 0; half < each; half += 4) {
      const auto some = load<T, 4>(x + at + half);
      for (int k = 0; k < 4; ++k) in[half + k] = to_float(some.element[k]) * scale;
    }
    uint2 out;
    auto* pairs = reinterpret_cast<__nv_fp8x2_storage_t*>(&out);
    for (int k = 0; k < each; k += 2)
      pairs[k / 2] = __nv_cvt_float2_to_fp8x2(make_float2(in[k], in[k + 1]), __NV_SATFINITE, format<F>);
    *reinterpret_cast<uint2*>(q + at) = out;
    *reinterpret_cast<uint2*>(straight + r * pitch + c) = out;
  }
  __syncthreads();

  const int quad = threadIdx.x % (tile / 4) * 4, rows_from = threadIdx.x / (tile / 4) * chunk;  // four columns of 16 rows
  unsigned columns_of[4][chunk / 4];
  for (int r = 0; r < chunk; r += 4) {
    unsigned w[4];
    for (int k = 0; k < 4; ++k) w[k] = *reinterpret_cast<const unsigned*>(straight + (rows_from + r + k) * pitch + quad);
    turn(w);
    for (int k = 0; k < 4; ++k) columns_of[k][r / 4] = w[k];
  }
  for (int k = 0; k < 4; ++k)
    *reinterpret_cast<uint4*>(turned + (quad + k) * pitch + rows_from) =
        make_uint4(columns_of[k][0], columns_of[k][1], columns_of[k][2], columns_of[k][3]);
  __syncthreads();

  constexpr int to_a_column = tile / chunk;
  const int r = threadIdx.x % to_a_column * chunk;
  for (int column = threadIdx.x / to_a_column; column < tile; column += threads / to_a_column)
    if (column0 + column < columns && row0 + r < rows)
      *reinterpret_cast<uint4*>(by_columns + std::size_t(column0 + column) * rows + row0 + r) =
          *reinterpret_cast<const uint4*>(turned + column * pitch + r);
}

template <class F, class T>
void round_to(const lane& on, const char* name, at q, at x, int rows, int columns) {
  const fp8_layout layout{std::size_t(rows) * columns};
  auto* to = on.at<unsigned char>(q);
  const T* from = on.at<T>(x);
  auto* maxima = reinterpret_cast<float*>(to + layout.maxima());
  const std::size_t packs = layout.elements / wide<T>;
  const unsigned parts = static_cast<unsigned>(std::min<std::size_t>(most_parts, ceil_div(packs, threads)));
  launch(on, name, part_maxima<wide<T>, T>, dim3(parts), dim3(threads), 0, maxima, from, packs);
  launch(on, name, round_tiles<F, T>, dim3(ceil_div(columns, tile), ceil_div(rows, tile)), dim3(threads), 0, to,
         to + layout.by_columns(), reinterpret_cast<float*>(to + layout.factor()), maxima, from, static_cast<int>(parts), rows, columns);
}

}  // namespace

template <class T>
void to_e4m3(const lane& on, at q, at x, int rows, int columns) {
  round_to<runtime::e4m3, T>(on, "to_e4m3", q, x, rows, columns);
}
template <class T>
void to_e5m2(const lane& on, at q, at x, int rows, int columns) {
  round_to<runtime::e5m2, T>(on, "to_e5m2", q, x, rows, columns);
}

template void to_e4m3<float>(const lane&, at, at, int, int);
template void to_e4m3<bf16>(const lane&, at, at, int, int);
template void to_e5m2<float>(const lane&, at, at, int, int);
template void to_e5m2<bf16>(const lane&, at, at, int, int);

}  // namespace rankc::cuda
