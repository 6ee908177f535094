// SPDX-License-Identifier: Apache-2.0
// Rounding to an fp8 tensor. A first kernel finds the largest number, in parts. A second rounds tiles and
// writes them by rows and by columns, with the scales of either. A source gives eight numbers of a row at a
// time. The results of a source with two results are adjacent. Tiles are processed from the last to the
// first, because the data that the first kernel read last is still in the cache.
#pragma once
#include "../device/device.cuh"

#include <cuda_fp8.h>
#include <rankc/contract/fp8.hpp>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace rankc::runtime::cuda {

inline constexpr int fp8_threads = 256;
inline constexpr int fp8_each = 8;  // numbers of a row that a source gives at a time
template <class Source>
inline constexpr int fp8_at_once =
    Source::results == 1 ? 4 : 2;  // packs of each operand that a thread reads at once
template <class Source>
inline constexpr int fp8_blocks = Source::results == 1 ? 4 : 5;  // minimum for a multiprocessor
inline constexpr std::size_t fp8_parts = runtime::fp8_layout::most_maxima;
inline constexpr int fp8_tile = 128;  // rows, and columns
inline constexpr int fp8_chunk = 16;  // rows that a thread transposes at once
inline constexpr int fp8_pitch =
    fp8_tile + fp8_chunk;  // bytes from one row of a tile in shared memory to the next

/// A thread's packs among (rows, packs of a row). All threads of the grid take packs in turn.
class pack_places {
 public:
  __device__ explicit pack_places(unsigned packs) : packs_(packs) {
    const unsigned first = blockIdx.x * fp8_threads + threadIdx.x, step = gridDim.x * fp8_threads;
    row = first / packs;
    pack = first % packs;
    rows_on_ = step / packs;
    packs_on_ = step % packs;
  }
  __device__ void next() {
    row += rows_on_;
    pack += packs_on_;
    if (pack >= packs_) {
      pack -= packs_;
      ++row;
    }
  }
  unsigned row, pack;

 private:
  unsigned packs_, rows_on_, packs_on_;
};

/// The absolute maximum of each block's packs of a source. Blocks take packs in turn.
/// Shapes: maxima (blocks).
template <class Source>
__global__ void __launch_bounds__(fp8_threads)
    part_maxima(float* maxima, Source source, int rows, int width) {
  constexpr int at_once = fp8_at_once<Source>;
  float most = 0.0f;
  for (pack_places at(static_cast<unsigned>(width / fp8_each)); at.row < static_cast<unsigned>(rows);) {
    float given[at_once][Source::results][fp8_each];
#pragma unroll
    for (int k = 0; k < at_once; ++k, at.next())  // repeats the last row past the end
      source(given[k], min(static_cast<int>(at.row), rows - 1), static_cast<int>(at.pack) * fp8_each);
#pragma unroll
    for (int k = 0; k < at_once; ++k)
      for (const auto& result : given[k])
        for (const float x : result) most = fmaxf(most, fabsf(x));
  }
  most = block_max(most);
  if (threadIdx.x == 0) maxima[blockIdx.x] = most;
}

template <class F>
inline constexpr __nv_fp8_interpretation_t fp8_format =
    std::is_same_v<F, runtime::e4m3> ? __NV_E4M3 : __NV_E5M2;

/// Transposes four rows of four bytes.
__device__ inline void turn(unsigned (&w)[4]) {
  const unsigned a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
  const unsigned c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
  w[0] = __byte_perm(a, b, 0x5410);
  w[1] = __byte_perm(a, b, 0x7632);
  w[2] = __byte_perm(c, d, 0x5410);
  w[3] = __byte_perm(c, d, 0x7632);
}

template <class F>
__device__ uint2 rounded(const float (&x)[fp8_each], float scale) {
  uint2 out;
  auto* pairs = reinterpret_cast<__nv_fp8x2_storage_t*>(&out);
  for (int k = 0; k < fp8_each; k += 2)
    pairs[k / 2] =
        __nv_cvt_float2_to_fp8x2(make_float2(x[k] * scale, x[k + 1] * scale), __NV_SATFINITE, fp8_format<F>);
  return out;
}

/// The offset in shared memory of 16 rows of a tile's column. In this order the threads of a warp write the
/// same rows of every fourth column, and read all rows of neighbouring columns, without bank conflicts.
__device__ inline int turned_place(int column, int chunk) {
  return column * fp8_tile + ((chunk ^ (column / 4)) % (fp8_tile / fp8_chunk)) * fp8_chunk;
}

/// One scale, from the largest of some maxima. Its factor is 1 / scale.
template <class F>
class tensor_scale {
 public:
  struct places {
    float* factor;
    const float* maxima;
    int parts;
  };
  /// All threads of a block call it.
  template <class Place>
  __device__ tensor_scale(const places& at, const Place&, int, int) {
    float most = 0.0f;
    for (int i = threadIdx.x; i < at.parts; i += fp8_threads) most = fmaxf(most, at.maxima[i]);
    scale_ = __fdiv_rn(static_cast<float>(F::largest), fmaxf(block_max(most), 1e-12f));
    if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0) *at.factor = __frcp_rn(scale_);
  }
  __device__ uint2 by_row(const float (&x)[fp8_each], int) const { return rounded<F>(x, scale_); }
  /// There is only one scale, so the result of by_row is reused.
  __device__ uint2 by_column(const float (&)[fp8_each], int, uint2 made) const { return made; }

 private:
  float scale_;
};

/// The start of a tile, this thread's eight columns of each result in the tile, and its first row.
template <class Source>
struct fp8_place {
  static constexpr int of_result = fp8_tile / Source::results;  // columns of a tile
  static constexpr int to_a_row = of_result / fp8_each, rows_of_block = fp8_threads / to_a_row;
  int row0, column0, c, first;
  __device__ fp8_place(int tile_row, int tile_column)
      : row0(tile_row * fp8_tile),
        column0(tile_column * of_result),
        c(threadIdx.x % to_a_row * fp8_each),
        first(threadIdx.x / to_a_row) {}
};

/// q = round(source * scale) by rows, and by columns. `width` is the width of one result. A tile has the same
/// number of columns of each result.
/// Shapes: q (rows, results x width), by_columns (results x width, rows); rows and width are multiples of 16.
template <class Scales, class Source>
__global__ void __launch_bounds__(fp8_threads, fp8_blocks<Source>)
    round_tiles(unsigned char* q, unsigned char* by_columns, typename Scales::places at, Source source,
                int rows, int width) {
  __shared__ alignas(16) unsigned char straight[fp8_tile * fp8_pitch], turned[fp8_tile * fp8_tile];
  using place = fp8_place<Source>;
  constexpr int results = Source::results, of_result = place::of_result, rows_of_block = place::rows_of_block;
  constexpr int at_once = fp8_at_once<Source>;
  const place mine(gridDim.y - 1 - blockIdx.y, gridDim.x - 1 - blockIdx.x);
  const auto [row0, column0, c, first] = mine;
  const Scales scales(at, mine, rows, width);
  const std::size_t columns = std::size_t{results} * width;

  if (column0 + c < width) {
    for (int r = first; r < fp8_tile; r += at_once * rows_of_block) {
      float given[at_once][results][fp8_each];
#pragma unroll
      for (int k = 0; k < at_once; ++k)
        source(given[k], min(row0 + r + k * rows_of_block, rows - 1), column0 + c);
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        const int row = r + k * rows_of_block;
        if (row >= fp8_tile || row0 + row >= rows) break;
        for (int result = 0; result < results; ++result) {
          const uint2 out = scales.by_row(given[k][result], row0 + row);
          *reinterpret_cast<uint2*>(q + (row0 + row) * columns + std::size_t(result) * width + column0 + c) =
              out;
          *reinterpret_cast<uint2*>(straight + row * fp8_pitch + result * of_result + c) =
              scales.by_column(given[k][result], result, out);
        }
      }
    }
  }
  __syncthreads();

  const int quad = threadIdx.x % (fp8_tile / 4) * 4,
            chunk = threadIdx.x / (fp8_tile / 4);  // four columns of 16 rows
  unsigned columns_of[4][fp8_chunk / 4];
  for (int r = 0; r < fp8_chunk; r += 4) {
    unsigned w[4];
    for (int k = 0; k < 4; ++k)
      w[k] = *reinterpret_cast<const unsigned*>(straight + (chunk * fp8_chunk + r + k) * fp8_pitch + quad);
    turn(w);
    for (int k = 0; k < 4; ++k) columns_of[k][r / 4] = w[k];
  }
  for (int k = 0; k < 4; ++k)
    *reinterpret_cast<uint4*>(turned + turned_place(quad + k, chunk)) =
        make_uint4(columns_of[k][0], columns_of[k][1], columns_of[k][2], columns_of[k][3]);
  __syncthreads();

  constexpr int to_a_column = fp8_tile / fp8_chunk;
  const int of_column = threadIdx.x % to_a_column, r = of_column * fp8_chunk;
  for (int column = threadIdx.x / to_a_column; column < fp8_tile; column += fp8_threads / to_a_column) {
    const int result = column / of_result, within = column0 + column % of_result;
    if (within < width && row0 + r < rows)
      *reinterpret_cast<uint4*>(by_columns + (std::size_t(result) * width + within) * rows + row0 + r) =
          *reinterpret_cast<const uint4*>(turned + turned_place(column, of_column));
  }
}

/// The addresses of the parts of an fp8 tensor.
struct fp8_places {
  unsigned char *by_rows, *by_columns;
  float *factor, *maxima;
  fp8_places(const lane& on, at q, int rows, int columns) {
    const runtime::fp8_layout layout{std::size_t(rows), std::size_t(columns)};
    by_rows = on.at<unsigned char>(q);
    by_columns = by_rows + layout.by_columns();
    factor = reinterpret_cast<float*>(by_rows + layout.factor());
    maxima = reinterpret_cast<float*>(by_rows + layout.maxima());
  }
};

template <class Source>
dim3 fp8_tiles(int rows, int width) {
  return dim3(ceil_div(width, fp8_place<Source>::of_result), ceil_div(rows, fp8_tile));
}

/// Rounds a source to fp8 of type F. The source's absolute maximum is the largest of `parts` maxima. It has
/// `width` numbers in a row, and as many for each further result.
template <class F, class Source>
void round_by_maxima(const lane& on, const char* name, const fp8_places& q, Source source, int parts,
                     int rows, int width) {
  using scale = tensor_scale<F>;
  launch(on, name, round_tiles<scale, Source>, fp8_tiles<Source>(rows, width), dim3(fp8_threads), 0,
         q.by_rows, q.by_columns, typename scale::places{q.factor, q.maxima, parts}, source, rows, width);
}
template <class F, class Source>
void round_to_fp8(const lane& on, const char* name, at to, Source source, int rows, int width) {
  const fp8_places q(on, to, rows, Source::results * width);
  const std::size_t packs = std::size_t(rows) * width / fp8_each;
  const int parts = static_cast<int>(std::min<std::size_t>(fp8_parts, ceil_div(packs, fp8_threads)));
  launch(on, name, part_maxima<Source>, dim3(parts), dim3(fp8_threads), 0, q.maxima, source, rows, width);
  round_by_maxima<F>(on, name, q, source, parts, rows, width);
}

}  // namespace rankc::runtime::cuda
