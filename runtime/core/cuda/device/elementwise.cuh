// SPDX-License-Identifier: Apache-2.0
// Elementwise kernels. A thread processes a few packs of 16 bytes, or a few elements if addresses or counts
// do not allow packs.
#pragma once
#include "device.cuh"

namespace rankc::runtime::cuda {

inline constexpr int map_block = 256;
inline constexpr int packs_each = 2;  // loaded at once by a thread, from each input

/// y[i] = f(x[i]); y (count), x (count). y may be x.
template <int N, class Y, class X, class F>
__global__ void map1(Y* y, const X* x, std::size_t count, F f) {
  const std::size_t first = (std::size_t{blockIdx.x} * packs_each * map_block + threadIdx.x) * N;
  pack<X, N> in[packs_each];
#pragma unroll
  for (int p = 0; p < packs_each; ++p)
    if (first + p * map_block * N < count) in[p] = load<X, N>(x + first + p * map_block * N);
#pragma unroll
  for (int p = 0; p < packs_each; ++p) {
    if (first + p * map_block * N >= count) return;
    float value[N];
    unpack(value, in[p]);
    for (int n = 0; n < N; ++n) value[n] = f(value[n]);
    store(y + first + p * map_block * N, packed<Y>(value));
  }
}

/// y[i] = f(a[i], b[i]); all (count). y may be a or b.
template <int N, class T, class F>
__global__ void map2(T* y, const T* a, const T* b, std::size_t count, F f) {
  const std::size_t first = (std::size_t{blockIdx.x} * packs_each * map_block + threadIdx.x) * N;
  pack<T, N> in_a[packs_each], in_b[packs_each];
#pragma unroll
  for (int p = 0; p < packs_each; ++p)
    if (first + p * map_block * N < count) {
      in_a[p] = load<T, N>(a + first + p * map_block * N);
      in_b[p] = load<T, N>(b + first + p * map_block * N);
    }
#pragma unroll
  for (int p = 0; p < packs_each; ++p) {
    if (first + p * map_block * N >= count) return;
    float left[N], right[N];
    unpack(left, in_a[p]);
    unpack(right, in_b[p]);
    for (int n = 0; n < N; ++n) left[n] = f(left[n], right[n]);
    store(y + first + p * map_block * N, packed<T>(left));
  }
}

template <class Y, class X, class F>
void run1(const lane& on, const char* name, Y* y, const X* x, std::size_t count, F f) {
  constexpr int n = wide<X>, each = packs_each * map_block;
  if (packable<n>(count, x, y))
    launch(on, name, map1<n, Y, X, F>, ceil_div(count, each * n), map_block, 0, y, x, count, f);
  else launch(on, name, map1<1, Y, X, F>, ceil_div(count, each), map_block, 0, y, x, count, f);
}

template <class T, class F>
void run2(const lane& on, const char* name, T* y, const T* a, const T* b, std::size_t count, F f) {
  constexpr int n = wide<T>, each = packs_each * map_block;
  if (packable<n>(count, y, a, b))
    launch(on, name, map2<n, T, F>, ceil_div(count, each * n), map_block, 0, y, a, b, count, f);
  else launch(on, name, map2<1, T, F>, ceil_div(count, each), map_block, 0, y, a, b, count, f);
}

}  // namespace rankc::runtime::cuda
