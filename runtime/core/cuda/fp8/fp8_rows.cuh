// SPDX-License-Identifier: Apache-2.0
// Rounding to an fp8 tensor with a scale for each row, and a scale for each column of the elements by
// columns. A first kernel finds the maximum of each row and column, and a second rounds tiles twice.
#pragma once
#include "fp8_tiles.cuh"

namespace rankc::runtime::cuda {

/// The addresses of the parts of such a tensor.
struct fp8_rows_places {
  unsigned char *by_rows, *by_columns;
  float *row_factors, *column_factors, *row_maxima, *column_maxima;
  std::size_t bytes_of_maxima;
  fp8_rows_places(const lane& on, at q, int rows, int columns) {
    const runtime::fp8_rows_layout layout{std::size_t(rows), std::size_t(columns)};
    by_rows = on.at<unsigned char>(q);
    by_columns = by_rows + layout.by_columns();
    row_factors = reinterpret_cast<float*>(by_rows + layout.row_factors());
    column_factors = reinterpret_cast<float*>(by_rows + layout.column_factors());
    row_maxima = reinterpret_cast<float*>(by_rows + layout.row_maxima());
    column_maxima = reinterpret_cast<float*>(by_rows + layout.column_maxima());
    bytes_of_maxima = layout.bytes() - layout.row_maxima();
  }
};

/// *to = max(*to, size). Sizes are not negative, so they have the order of their bits.
__device__ inline void take_largest(float* to, float size) {
  atomicMax(reinterpret_cast<unsigned*>(to), __float_as_uint(size));
}

/// The absolute maximum of each row and column of a source. The maxima must be zero before.
/// Shapes: row_maxima (rows), column_maxima (results x width).
template <class Source>
__global__ void __launch_bounds__(fp8_threads)
    tile_maxima(float* row_maxima, float* column_maxima, Source source, int rows, int width) {
  using place = fp8_place<Source>;
  constexpr int results = Source::results, at_once = fp8_at_once<Source>;
  __shared__ float of_columns[fp8_tile];
  if (threadIdx.x < fp8_tile) of_columns[threadIdx.x] = 0.0f;
  __syncthreads();
  const auto [row0, column0, c, first] = place(blockIdx.y, blockIdx.x);
  const bool is_inside = column0 + c < width;
  float in_columns[results][fp8_each] = {};
  for (int r = first; r < fp8_tile; r += at_once * place::rows_of_block) {
    float given[at_once][results][fp8_each];
#pragma unroll
    for (int k = 0; k < at_once; ++k)  // repeats the last row past the end
      source(given[k], min(row0 + r + k * place::rows_of_block, rows - 1),
             min(column0 + c, width - fp8_each));
#pragma unroll
    for (int k = 0; k < at_once; ++k) {
      float most = 0.0f;
      for (int result = 0; result < results; ++result)
        for (int i = 0; i < fp8_each; ++i) {
          const float size = fabsf(given[k][result][i]);
          most = fmaxf(most, size);
          in_columns[result][i] = fmaxf(in_columns[result][i], size);
        }
      for (int step = place::to_a_row / 2; step > 0; step /= 2)
        most = fmaxf(most, __shfl_xor_sync(0xffffffffu, most, step));
      const int row = row0 + r + k * place::rows_of_block;
      if (threadIdx.x % place::to_a_row == 0 && row < rows) take_largest(row_maxima + row, most);
    }
  }
  if (is_inside)
    for (int result = 0; result < results; ++result)
      for (int i = 0; i < fp8_each; ++i)
        take_largest(of_columns + result * place::of_result + c + i, in_columns[result][i]);
  __syncthreads();
  const int result = threadIdx.x / place::of_result, within = column0 + threadIdx.x % place::of_result;
  if (threadIdx.x < fp8_tile && within < width)
    take_largest(column_maxima + result * width + within, of_columns[threadIdx.x]);
}

/// The scales of rows and of a thread's columns. Their factors are 1 / scale.
template <int Results>
class row_scales {
 public:
  struct places {
    float *row_factors, *column_factors;
    const float *row_maxima, *column_maxima;
  };
  /// All threads of a block call it.
  template <class Place>
  __device__ row_scales(const places& at, const Place& mine, int rows, int width) : maxima_(at.row_maxima) {
    const int column = mine.column0 + mine.c;
    for (int result = 0; result < Results; ++result)
      for (int i = 0; i < fp8_each; ++i)
        of_columns_[result][i] =
            column < width ? scale_of(at.column_maxima[result * width + column + i]) : 1.0f;
    if (blockIdx.y == 0 && threadIdx.x < Place::to_a_row && column < width)
      for (int result = 0; result < Results; ++result)
        for (int i = 0; i < fp8_each; ++i)
          at.column_factors[result * width + column + i] = __frcp_rn(of_columns_[result][i]);
    if (const int row = mine.row0 + threadIdx.x; blockIdx.x == 0 && threadIdx.x < fp8_tile && row < rows)
      at.row_factors[row] = __frcp_rn(scale_of(maxima_[row]));
  }
  __device__ uint2 by_row(const float (&x)[fp8_each], int row) const {
    return rounded<runtime::e4m3>(x, scale_of(maxima_[row]));
  }
  __device__ uint2 by_column(const float (&x)[fp8_each], int result, uint2) const {
    float scaled[fp8_each];
    for (int i = 0; i < fp8_each; ++i) scaled[i] = x[i] * of_columns_[result][i];
    return rounded<runtime::e4m3>(scaled, 1.0f);
  }

 private:
  /// The scale of fp8_row_scale.
  __device__ static float scale_of(float largest) {
    const float scale = __fdiv_rn(static_cast<float>(runtime::e4m3::largest), fmaxf(largest, 1e-12f));
    return __uint_as_float(__float_as_uint(scale) & 0xFF800000u);
  }
  const float* maxima_;
  float of_columns_[Results][fp8_each];
};

/// Rounds a source to fp8: `width` numbers in a row, and as many for each further result.
template <class Source>
void round_to_rows(const lane& on, const char* name, at to, Source source, int rows, int width) {
  using scales = row_scales<Source::results>;
  const fp8_rows_places q(on, to, rows, Source::results * width);
  check(on, cudaMemsetAsync(q.row_maxima, 0, q.bytes_of_maxima, on.stream), name);
  const dim3 tiles = fp8_tiles<Source>(rows, width);
  launch(on, name, tile_maxima<Source>, tiles, dim3(fp8_threads), 0, q.row_maxima, q.column_maxima, source,
         rows, width);
  launch(on, name, round_tiles<scales, Source>, tiles, dim3(fp8_threads), 0, q.by_rows, q.by_columns,
         typename scales::places{q.row_factors, q.column_factors, q.row_maxima, q.column_maxima}, source,
         rows, width);
}

}  // namespace rankc::runtime::cuda
