// SPDX-License-Identifier: Apache-2.0
// Element by element: GELU, add, the working copy, clear. A thread handles a few packs of 16 bytes, or a few
// elements where addresses or counts do not allow packs.
#include <rankc/runtime/cuda/kernels.hpp>

#include "device.cuh"

namespace rankc::cuda {
namespace {

constexpr int block = 256;
constexpr int packs_each = 2;  // that a thread loads at once, of each input

/// tanh form: gelu(x) = x / 2 (1 + tanh(u)) = x sigmoid(2 u), with 2 u = 2 sqrt(2 / pi) (x + 0.044715 x^3).
constexpr float twice_root = 2 * 0.7978845608028654f, cubic = 0.044715f;

template <class T>
struct gelu_of {
  __device__ float operator()(float x) const { return x * sigmoid<T>(twice_root * (x + cubic * x * x * x)); }
};
template <class T>
struct gelu_grad_of {
  __device__ float operator()(float dy, float x) const {
    const float s = sigmoid<T>(twice_root * (x + cubic * x * x * x));
    return dy * (s + x * s * (1.0f - s) * twice_root * (1.0f + 3.0f * cubic * x * x));
  }
};
struct sum_of {
  __device__ float operator()(float a, float b) const { return a + b; }
};
struct as_it_is {
  __device__ float operator()(float x) const { return x; }
};

/// y[i] = f(x[i]); y (count), x (count). y may be x.
template <int N, class Y, class X, class F>
__global__ void map1(Y* y, const X* x, std::size_t count, F f) {
  const std::size_t first = (std::size_t{blockIdx.x} * packs_each * block + threadIdx.x) * N;
  pack<X, N> in[packs_each];
#pragma unroll
  for (int p = 0; p < packs_each; ++p)
    if (first + p * block * N < count) in[p] = load<X, N>(x + first + p * block * N);
#pragma unroll
  for (int p = 0; p < packs_each; ++p) {
    if (first + p * block * N >= count) return;
    float value[N];
    unpack(value, in[p]);
    for (int n = 0; n < N; ++n) value[n] = f(value[n]);
    store(y + first + p * block * N, packed<Y>(value));
  }
}

/// y[i] = f(a[i], b[i]); all (count). y may be a or b.
template <int N, class T, class F>
__global__ void map2(T* y, const T* a, const T* b, std::size_t count, F f) {
  const std::size_t first = (std::size_t{blockIdx.x} * packs_each * block + threadIdx.x) * N;
  pack<T, N> in_a[packs_each], in_b[packs_each];
#pragma unroll
  for (int p = 0; p < packs_each; ++p)
    if (first + p * block * N < count) {
      in_a[p] = load<T, N>(a + first + p * block * N);
      in_b[p] = load<T, N>(b + first + p * block * N);
    }
#pragma unroll
  for (int p = 0; p < packs_each; ++p) {
    if (first + p * block * N >= count) return;
    float left[N], right[N];
    unpack(left, in_a[p]);
    unpack(right, in_b[p]);
    for (int n = 0; n < N; ++n) left[n] = f(left[n], right[n]);
    store(y + first + p * block * N, packed<T>(left));
  }
}

template <class Y, class X, class F>
void run1(rank& r, const char* name, Y* y, const X* x, std::size_t count, F f) {
  constexpr int n = wide<X>, each = packs_each * block;
  if (packable<n>(count, x, y))
    launch(r, name, map1<n, Y, X, F>, ceil_div(count, each * n), block, 0, y, x, count, f);
  else launch(r, name, map1<1, Y, X, F>, ceil_div(count, each), block, 0, y, x, count, f);
}

template <class T, class F>
void run2(rank& r, const char* name, T* y, const T* a, const T* b, std::size_t count, F f) {
  constexpr int n = wide<T>, each = packs_each * block;
  if (packable<n>(count, y, a, b))
    launch(r, name, map2<n, T, F>, ceil_div(count, each * n), block, 0, y, a, b, count, f);
  else launch(r, name, map2<1, T, F>, ceil_div(count, each), block, 0, y, a, b, count, f);
}

}  // namespace

template <class T>
void gelu(rank& r, at y, at x, std::size_t count) {
  run1(r, "gelu", r.at<T>(y), r.at<T>(x), count, gelu_of<T>{});
}

template <class T>
void gelu_grad(rank& r, at dx, at dy, at x, std::size_t count) {
  run2(r, "gelu_grad", r.at<T>(dx), r.at<T>(dy), r.at<T>(x), count, gelu_grad_of<T>{});
}

template <class T>
void add(rank& r, at y, at a, at b, std::size_t count) {
  run2(r, "add", r.at<T>(y), r.at<T>(a), r.at<T>(b), count, sum_of{});
}

void working_copy(rank& r, at copy, at master, std::size_t count) {
  run1(r, "working_copy", r.at<bf16>(copy), r.at<float>(master), count, as_it_is{});
}

template <class T>
void clear(rank& r, at out, std::size_t count) {
  check(r, cudaMemsetAsync(r.at<T>(out), 0, count * sizeof(T), r.on(stream::compute)), "clear");
}

template <class T>
void copy(rank& r, at y, at x, std::size_t count) {
  check(r, cudaMemcpyAsync(r.at<T>(y), r.at<T>(x), count * sizeof(T), cudaMemcpyDeviceToDevice, r.on(stream::compute)), "copy");
}

template void gelu<float>(rank&, at, at, std::size_t);
template void gelu<bf16>(rank&, at, at, std::size_t);
template void gelu_grad<float>(rank&, at, at, at, std::size_t);
template void gelu_grad<bf16>(rank&, at, at, at, std::size_t);
template void add<float>(rank&, at, at, at, std::size_t);
template void add<bf16>(rank&, at, at, at, std::size_t);
template void clear<float>(rank&, at, std::size_t);
template void clear<bf16>(rank&, at, std::size_t);
template void copy<float>(rank&, at, at, std::size_t);
template void copy<bf16>(rank&, at, at, std::size_t);

}  // namespace rankc::cuda
