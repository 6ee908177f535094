// SPDX-License-Identifier: Apache-2.0
// Grouped GEMMs of any size and type, on any GPU. Those that Hopper's tensor cores support run there
// (grouped_hopper.hpp).
#include <rankc/runtime/cuda/kernels.hpp>

#include "grouped_hopper.hpp"
#include "row_tiles.cuh"

#include <type_traits>

namespace rankc::runtime::cuda {
namespace {

// sides of a block's result; terms at a time; sides of a thread's
constexpr int tile = 64, depth = 16, side = 4;
constexpr int block = (tile / side) * (tile / side);

/// A factor of a GEMM. Elements are `step` apart along the result, and `next` apart along the sum.
template <class T>
struct factor {
  const T* first;
  std::size_t step, next;
};

/// The terms of a tile in shared memory. One extra column avoids bank conflicts in a warp.
using terms = float[depth][tile + 1];

/// Copies `depth` terms from `from` on. Terms beyond `count` elements or `length` terms are 0.
template <class T>
__device__ void fetch(terms& to, const factor<T>& f, int count, int from, int length) {
  for (unsigned i = threadIdx.x; i < tile * depth; i += block) {
    const int k = static_cast<int>(f.next == 1 ? i % depth : i / tile);
    const int n = static_cast<int>(f.next == 1 ? i / depth : i % tile);
    to[k][n] = n < count && from + k < length ? to_float(f.first[n * f.step + (from + k) * f.next]) : 0.0f;
  }
}

/// sums += a b over `length` terms. This tile has `rows` and `columns` of the sums.
template <class T>
__device__ void add_product(float (&sums)[side][side], const factor<T>& a, const factor<T>& b, int rows,
                            int columns, int length) {
  __shared__ terms of_a, of_b;
  const int row = threadIdx.x / (tile / side) * side, column = threadIdx.x % (tile / side) * side;
  for (int from = 0; from < length; from += depth) {
    __syncthreads();  // the previous terms have been read
    fetch(of_a, a, rows, from, length);
    fetch(of_b, b, columns, from, length);
    __syncthreads();
    for (int k = 0; k < depth; ++k)
      for (int i = 0; i < side; ++i)
        for (int j = 0; j < side; ++j) sums[i][j] = fmaf(of_a[k][row + i], of_b[k][column + j], sums[i][j]);
  }
}

/// Stores a tile's sums at `to`, with rows `stride` apart, plus the elements at `before`, which may be null
/// or `to`.
template <class T>
__device__ void put(T* to, const T* before, const float (&sums)[side][side], int rows, int columns,
                    std::size_t stride) {
  const int row = threadIdx.x / (tile / side) * side, column = threadIdx.x % (tile / side) * side;
  for (int i = 0; i < side; ++i)
    for (int j = 0; j < side; ++j) {
      if (row + i >= rows || column + j >= columns) continue;
      const std::size_t at = (row + i) * stride + column + j;
      to[at] = from_float<T>(before != nullptr ? to_float(before[at]) + sums[i][j] : sums[i][j]);
    }
}

/// c[r] = a[r] b[e], plus before[r] if it is not null. b[e] is `per_expert` elements after b[e - 1]. A block
/// finds its tile, or there is none.
/// Shapes: a (rows, length), c (rows, columns).
template <class T>
__global__ void __launch_bounds__(block)
    multiply_rows(T* c, const T* before, const T* a, factor<T> b, std::size_t per_expert, const int* offsets,
                  int segments, int experts, int columns, int length) {
  row_tiles<tile> tiles(offsets, segments, (columns + tile - 1) / tile);
  row_tile at;
  if (!tiles.find(static_cast<int>(blockIdx.x), at)) return;
  const int column = at.column * tile, width = min(tile, columns - column);
  const std::size_t row = at.row;
  b.first += at.segment % experts * per_expert + column * b.step;
  float sums[side][side]{};
  add_product<T>(sums, {a + row * length, static_cast<std::size_t>(length), 1}, b, at.rows, width, length);
  const std::size_t there = row * columns + column;
  put(c + there, before != nullptr ? before + there : nullptr, sums, at.rows, width, columns);
}

/// dw[e] = or += dy^T x over the rows of expert e, which is blockIdx.z.
/// Shapes: dy (rows, out), x (rows, in), dw (experts, out, in).
template <class T>
__global__ void __launch_bounds__(block)
    multiply_columns(float* dw, const T* dy, const T* x, const int* offsets, int segments, int experts,
                     int in, int out, bool add) {
  const int row = blockIdx.y * tile, column = blockIdx.x * tile;
  const int height = min(tile, out - row), width = min(tile, in - column);
  const std::size_t n_in = in, n_out = out;
  float sums[side][side]{};
  for (int s = blockIdx.z; s < segments; s += experts) {
    const std::size_t from = offsets[s];
    add_product<T>(sums, {dy + from * n_out + row, 1, n_out}, {x + from * n_in + column, 1, n_in}, height,
                   width, offsets[segments + s] - offsets[s]);
  }
  float* const to = dw + (blockIdx.z * n_out + row) * n_in + column;
  put(to, add ? to : nullptr, sums, height, width, n_in);
}

/// The number of blocks that is enough for the tiles of `rows`, whatever the segments are.
unsigned most_tiles(int rows, int segments, int columns) {
  return static_cast<unsigned>(rows / tile + segments) * static_cast<unsigned>(ceil_div(columns, tile));
}

template <class T>
constexpr bool on_tensor_cores = std::is_same_v<T, bf16>;

/// y = before + x w[e]^T. `before` is null, or may be y.
template <class T>
void linear_of_any(const lane& on, const char* name, T* y, const T* before, const T* x, const T* w,
                   const int* offsets, const grouped_shape& s) {
  const std::size_t n_in = static_cast<std::size_t>(s.in);
  launch(on, name, multiply_rows<T>, most_tiles(s.rows, s.segments, s.out), block, 0, y, before, x,
         factor<T>{w, n_in, 1}, n_in * s.out, offsets, s.segments, s.experts, s.out, s.in);
}

}  // namespace

template <class T>
void grouped_linear(const lane& on, at y, at x, at w, at offsets, int rows, int in, int out, int segments,
                    int experts) {
  const grouped_shape shape{rows, in, out, segments, experts};
  const int* where = on.at<int>(offsets);
  if constexpr (on_tensor_cores<T>)
    if (hopper_takes(on, shape, on.at<T>(y), on.at<T>(x), on.at<T>(w)))
      return hopper_linear(on, on.at<T>(y), on.at<T>(x), on.at<T>(w), where, shape);
  linear_of_any(on, "grouped_linear", on.at<T>(y), static_cast<const T*>(nullptr), on.at<T>(x), on.at<T>(w),
                where, shape);
}

template <class T>
void grouped_linear_add(const lane& on, at y, at x, at w, at offsets, at residual, int rows, int in, int out,
                        int segments, int experts) {
  const grouped_shape shape{rows, in, out, segments, experts};
  const int* where = on.at<int>(offsets);
  T *made = on.at<T>(y), *before = on.at<T>(residual);
  if constexpr (on_tensor_cores<T>)
    if (hopper_takes(on, shape, made, on.at<T>(x), on.at<T>(w))) {
      if (made != before)
        check(on,
              cudaMemcpyAsync(made, before, std::size_t{1} * rows * out * sizeof(T), cudaMemcpyDeviceToDevice,
                              on.stream),
              "grouped_linear_add");
      return hopper_linear_add(on, made, on.at<T>(x), on.at<T>(w), where, shape);
    }
  linear_of_any<T>(on, "grouped_linear_add", made, before, on.at<T>(x), on.at<T>(w), where, shape);
}

template <class T>
void grouped_linear_two(const lane& on, at y, at x, at w, at x2, at w2, at offsets, int rows, int in, int out,
                        int segments, int experts) {
  const grouped_shape shape{rows, in, out, segments, experts};
  if constexpr (on_tensor_cores<T>)
    if (hopper_takes(on, shape, on.at<T>(y), on.at<T>(x), on.at<T>(w)) &&
        hopper_takes(on, shape, on.at<T>(y), on.at<T>(x2), on.at<T>(w2)))
      return hopper_linear_two(on, on.at<T>(y), on.at<T>(x), on.at<T>(w), on.at<T>(x2), on.at<T>(w2),
                               on.at<int>(offsets), shape);
  grouped_linear<T>(on, y, x, w, offsets, rows, in, out, segments, experts);
  grouped_linear_add<T>(on, y, x2, w2, offsets, y, rows, in, out, segments, experts);
}

template <class T>
void grouped_linear_dx(const lane& on, at dx, at dy, at w, at offsets, int rows, int in, int out,
                       int segments, int experts) {
  const grouped_shape shape{rows, in, out, segments, experts};
  const int* where = on.at<int>(offsets);
  if constexpr (on_tensor_cores<T>)
    if (hopper_takes(on, shape, on.at<T>(dx), on.at<T>(dy), on.at<T>(w)))
      return hopper_linear_dx(on, on.at<T>(dx), on.at<T>(dy), on.at<T>(w), where, shape);
  const std::size_t n_in = static_cast<std::size_t>(in);
  launch(on, "grouped_linear_dx", multiply_rows<T>, most_tiles(rows, segments, in), block, 0, on.at<T>(dx),
         static_cast<const T*>(nullptr), on.at<T>(dy), factor<T>{on.at<T>(w), 1, n_in}, n_in * out, where,
         segments, experts, in, out);
}

template <class T>
void grouped_linear_dw(const lane& on, at dw, at dy, at x, at offsets, int rows, int in, int out,
                       int segments, int experts, bool accumulate) {
  const grouped_shape shape{rows, in, out, segments, experts};
  const int* where = on.at<int>(offsets);
  if constexpr (on_tensor_cores<T>)
    if (hopper_takes(on, shape, on.at<float>(dw), on.at<T>(dy), on.at<T>(x)))
      return hopper_linear_dw(on, on.at<float>(dw), on.at<T>(dy), on.at<T>(x), where, shape, accumulate);
  const dim3 grid(static_cast<unsigned>(ceil_div(in, tile)), static_cast<unsigned>(ceil_div(out, tile)),
                  static_cast<unsigned>(experts));
  launch(on, "grouped_linear_dw", multiply_columns<T>, grid, block, 0, on.at<float>(dw), on.at<T>(dy),
         on.at<T>(x), where, segments, experts, in, out, accumulate);
}

template void grouped_linear<float>(const lane&, at, at, at, at, int, int, int, int, int);
template void grouped_linear<bf16>(const lane&, at, at, at, at, int, int, int, int, int);
template void grouped_linear_add<float>(const lane&, at, at, at, at, at, int, int, int, int, int);
template void grouped_linear_add<bf16>(const lane&, at, at, at, at, at, int, int, int, int, int);
template void grouped_linear_two<float>(const lane&, at, at, at, at, at, at, int, int, int, int, int);
template void grouped_linear_two<bf16>(const lane&, at, at, at, at, at, at, int, int, int, int, int);
template void grouped_linear_dx<float>(const lane&, at, at, at, at, int, int, int, int, int);
template void grouped_linear_dx<bf16>(const lane&, at, at, at, at, int, int, int, int, int);
template void grouped_linear_dw<float>(const lane&, at, at, at, at, int, int, int, int, int, bool);
template void grouped_linear_dw<bf16>(const lane&, at, at, at, at, int, int, int, int, int, bool);

}  // namespace rankc::runtime::cuda
