// SPDX-License-Identifier: Apache-2.0
// What makes a tensor of eight bits: a pass for the largest number, in parts, and one that rounds tiles and leaves them by rows
// and by columns. A source gives eight numbers of a row at a time; one that gives several results has them side by side. Tiles
// are taken from the last to the first, so that what the first pass read last is still in the cache.
#pragma once
#include "device.cuh"

#include <cuda_fp8.h>
#include <rankc/runtime/fp8.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace rankc::cuda {

inline constexpr int fp8_threads = 256;
inline constexpr int fp8_each = 8;                         // numbers of a row that a source gives
inline constexpr int fp8_tile = 128;                       // rows, and columns
inline constexpr int fp8_chunk = 16;                       // rows that a thread turns at once
inline constexpr int fp8_pitch = fp8_tile + fp8_chunk;     // bytes from one row of a tile in shared memory to the next

/// The largest size of each part of what a source gives, which blocks take in turns. Shapes: maxima (blocks).
template <class Source>
__global__ void __launch_bounds__(fp8_threads) part_maxima(float* maxima, Source source, int rows, int width) {
  const unsigned packs_of_row = static_cast<unsigned>(width / fp8_each);
  const std::size_t packs = std::size_t(rows) * packs_of_row;
  float most = 0.0f;
  for (std::size_t i = std::size_t{blockIdx.x} * fp8_threads + threadIdx.x; i < packs; i += std::size_t{gridDim.x} * fp8_threads) {
    float given[Source::results][fp8_each];
    source(given, static_cast<int>(i / packs_of_row), static_cast<int>(i % packs_of_row) * fp8_each);
    for (const auto& result : given)
      for (const float x : result) most = fmaxf(most, fabsf(x));
  }
  most = block_max(most);
  if (threadIdx.x == 0) maxima[blockIdx.x] = most;
}

template <class F>
inline constexpr __nv_fp8_interpretation_t fp8_format = std::is_same_v<F, runtime::e4m3> ? __NV_E4M3 : __NV_E5M2;

/// Four rows of four bytes as four columns.
__device__ inline void turn(unsigned (&w)[4]) {
  const unsigned a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
  const unsigned c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
  w[0] = __byte_perm(a, b, 0x5410);
  w[1] = __byte_perm(a, b, 0x7632);
  w[2] = __byte_perm(c, d, 0x5410);
  w[3] = __byte_perm(c, d, 0x7632);
}

/// q = round(what a source gives, times scale) by rows, and by columns; factor = 1 / scale. `width` is of one result.
/// Shapes: q (rows, results x width), by_columns (results x width, rows), maxima (parts); rows and width are multiples of 16.
template <class F, class Source>
__global__ void __launch_bounds__(fp8_threads) round_tiles(unsigned char* q, unsigned char* by_columns, float* factor, const float* maxima,
                                                           Source source, int parts, int rows, int width) {
  __shared__ alignas(16) unsigned char straight[fp8_tile * fp8_pitch], turned[fp8_tile * fp8_pitch];
  float most = 0.0f;
  for (int i = threadIdx.x; i < parts; i += fp8_threads) most = fmaxf(most, maxima[i]);
  const float scale = __fdiv_rn(static_cast<float>(F::largest), fmaxf(block_max(most), 1e-12f));
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *factor = __frcp_rn(scale);
  const int which = static_cast<int>(blockIdx.x % Source::results);  // neighbours take what the source reads for all results
  const int column0 = static_cast<int>((gridDim.x - 1 - blockIdx.x) / Source::results) * fp8_tile;
  const int row0 = static_cast<int>(gridDim.y - 1 - blockIdx.y) * fp8_tile;
  const std::size_t columns = std::size_t{Source::results} * width, first = std::size_t(which) * width;

  constexpr int to_a_row = fp8_tile / fp8_each;
  const int c = threadIdx.x % to_a_row * fp8_each;
  for (int r = threadIdx.x / to_a_row; r < fp8_tile; r += fp8_threads / to_a_row) {
    if (row0 + r >= rows || column0 + c >= width) continue;
    float given[Source::results][fp8_each];
    source(given, row0 + r, column0 + c);
    uint2 out;
    auto* pairs = reinterpret_cast<__nv_fp8x2_storage_t*>(&out);
    for (int result = 0; result < Source::results; ++result)
      if (result == which)
        for (int k = 0; k < fp8_each; k += 2)
          pairs[k / 2] = __nv_cvt_float2_to_fp8x2(make_float2(given[result][k] * scale, given[result][k + 1] * scale), __NV_SATFINITE,
                                                  fp8_format<F>);
    *reinterpret_cast<uint2*>(q + (row0 + r) * columns + first + column0 + c) = out;
    *reinterpret_cast<uint2*>(straight + r * fp8_pitch + c) = out;
  }
  __syncthreads();

  const int quad = threadIdx.x % (fp8_tile / 4) * 4, rows_from = threadIdx.x / (fp8_tile / 4) * fp8_chunk;  // four columns of 16 rows
  unsigned columns_of[4][fp8_chunk / 4];
  for (int r = 0; r < fp8_chunk; r += 4) {
    unsigned w[4];
    for (int k = 0; k < 4; ++k) w[k] = *reinterpret_cast<const unsigned*>(straight + (rows_from + r + k) * fp8_pitch + quad);
    turn(w);
    for (int k = 0; k < 4; ++k) columns_of[k][r / 4] = w[k];
  }
  for (int k = 0; k < 4; ++k)
    *reinterpret_cast<uint4*>(turned + (quad + k) * fp8_pitch + rows_from) =
        make_uint4(columns_of[k][0], columns_of[k][1], columns_of[k][2], columns_of[k][3]);
  __syncthreads();

  constexpr int to_a_column = fp8_tile / fp8_chunk;
  const int r = threadIdx.x % to_a_column * fp8_chunk;
  for (int column = threadIdx.x / to_a_column; column < fp8_tile; column += fp8_threads / to_a_column)
    if (column0 + column < width && row0 + r < rows)
      *reinterpret_cast<uint4*>(by_columns + (first + column0 + column) * rows + row0 + r) =
          *reinterpret_cast<const uint4*>(turned + column * fp8_pitch + r);
}

/// q in eight bits of F, of what a source gives: `width` numbers in a row, and as many of each further result.
template <class F, class Source>
void round_to_fp8(const lane& on, const char* name, at q, Source source, int rows, int width) {
  const runtime::fp8_layout layout{std::size_t{Source::results} * rows * width};
  auto* to = on.at<unsigned char>(q);
  auto* maxima = reinterpret_cast<float*>(to + layout.maxima());
  const std::size_t packs = std::size_t(rows) * width / fp8_each;
  const unsigned parts = static_cast<unsigned>(std::min<std::size_t>(runtime::fp8_layout::most_maxima, ceil_div(packs, fp8_threads)));
  launch(on, name, part_maxima<Source>, dim3(parts), dim3(fp8_threads), 0, maxima, source, rows, width);
  launch(on, name, round_tiles<F, Source>, dim3(Source::results * ceil_div(width, fp8_tile), ceil_div(rows, fp8_tile)), dim3(fp8_threads), 0,
         to, to + layout.by_columns(), reinterpret_cast<float*>(to + layout.factor()), maxima, source, static_cast<int>(parts), rows, width);
}

}  // namespace rankc::cuda
