// SPDX-License-Identifier: Apache-2.0
// Splits rows into two parts, and concatenates two parts.
#include <rankc/runtime/cuda/kernels.hpp>

#include "../device/device.cuh"

namespace rankc::runtime::cuda {
namespace {

/// whole[n] = (a[n], b[n]), or the inverse with `Apart`. A thread has N neighbouring columns.
/// Shapes: whole (rows, left + right), a (rows, left), b (rows, right).
template <bool Apart, int N, class T>
__global__ void __launch_bounds__(block_size)
    move_parts(T* whole, T* a, T* b, std::size_t rows, int left, int right) {
  const unsigned packs = static_cast<unsigned>(left + right) / N;
  const std::size_t item = std::size_t{blockIdx.x} * block_size + threadIdx.x, row = item / packs;
  if (row >= rows) return;
  const int column = static_cast<int>(item % packs) * N;
  T* of_whole = whole + row * (left + right) + column;
  T* of_part = column < left ? a + row * left + column : b + row * right + (column - left);
  if constexpr (Apart) store(of_part, load<T, N>(of_whole));
  else store(of_whole, load<T, N>(of_part));
}

template <bool Apart, class T>
void run(const lane& on, const char* name, T* whole, T* a, T* b, int rows, int left, int right) {
  constexpr int n = wide<T>;
  const std::size_t n_rows = static_cast<std::size_t>(rows), count = n_rows * (left + right);
  if (right % n == 0 && packable<n>(left, whole, a, b))
    launch(on, name, move_parts<Apart, n, T>, ceil_div(count, block_size * n), block_size, 0, whole, a, b,
           n_rows, left, right);
  else
    launch(on, name, move_parts<Apart, 1, T>, ceil_div(count, block_size), block_size, 0, whole, a, b, n_rows,
           left, right);
}

}  // namespace

template <class T>
void split(const lane& on, at a, at b, at x, int rows, int left, int right) {
  run<true>(on, "split", on.at<T>(x), on.at<T>(a), on.at<T>(b), rows, left, right);
}

template <class T>
void concat(const lane& on, at y, at a, at b, int rows, int left, int right) {
  run<false>(on, "concat", on.at<T>(y), on.at<T>(a), on.at<T>(b), rows, left, right);
}

template void split<float>(const lane&, at, at, at, int, int, int);
template void split<bf16>(const lane&, at, at, at, int, int, int);
template void concat<float>(const lane&, at, at, at, int, int, int);
template void concat<bf16>(const lane&, at, at, at, int, int, int);

}  // namespace rankc::runtime::cuda
