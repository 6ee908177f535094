// SPDX-License-Identifier: Apache-2.0
// Element by element: GELU, SwiGLU, add, the working copy, clear. A thread handles one pack of 16 bytes, or
// one element where addresses or counts do not allow packs.
#include <rankc/runtime/cuda/kernels.hpp>

#include "device.cuh"

namespace rankc::cuda {
namespace {

constexpr int block = 256;

/// tanh form: gelu(x) = x / 2 (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3).
constexpr float root_2_over_pi = 0.7978845608028654f, cubic = 0.044715f;

struct gelu_of {
  __device__ float operator()(float x) const {
    return 0.5f * x * (1.0f + tanhf(root_2_over_pi * (x + cubic * x * x * x)));
  }
};
struct gelu_grad_of {
  __device__ float operator()(float dy, float x) const {
    const float t = tanhf(root_2_over_pi * (x + cubic * x * x * x));
    const float du = root_2_over_pi * (1.0f + 3.0f * cubic * x * x);
    return dy * (0.5f * (1.0f + t) + 0.5f * x * (1.0f - t * t) * du);
  }
};
struct swiglu_of {
  __device__ float operator()(float gate, float up) const { return gate / (1.0f + expf(-gate)) * up; }
};
struct sum_of {
  __device__ float operator()(float a, float b) const { return a + b; }
};

/// y[i] = f(x[i]); y (count), x (count). y may be x.
template <int N, class Y, class X, class F>
__global__ void map1(Y* y, const X* x, std::size_t count, F f) {
  const std::size_t i = (std::size_t{blockIdx.x} * block + threadIdx.x) * N;
  if (i >= count) return;
  const auto in = load<X, N>(x + i);
  pack<Y, N> out;
  for (int n = 0; n < N; ++n) out.element[n] = from_float<Y>(f(to_float(in.element[n])));
  store(y + i, out);
}

/// y[i] = f(a[i], b[i]); all (count). y may be a or b.
template <int N, class T, class F>
__global__ void map2(T* y, const T* a, const T* b, std::size_t count, F f) {
  const std::size_t i = (std::size_t{blockIdx.x} * block + threadIdx.x) * N;
  if (i >= count) return;
  const auto in_a = load<T, N>(a + i);
  const auto in_b = load<T, N>(b + i);
  pack<T, N> out;
  for (int n = 0; n < N; ++n)
    out.element[n] = from_float<T>(f(to_float(in_a.element[n]), to_float(in_b.element[n])));
  store(y + i, out);
}

/// y = s(gate) gate up with s the sigmoid; all (count). dgate and dup may be any of the inputs.
template <int N, class T>
__global__ void swiglu_backward(T* dgate, T* dup, const T* dy, const T* gate, const T* up,
                                std::size_t count) {
  const std::size_t i = (std::size_t{blockIdx.x} * block + threadIdx.x) * N;
  if (i >= count) return;
  const auto in_dy = load<T, N>(dy + i);
  const auto in_gate = load<T, N>(gate + i);
  const auto in_up = load<T, N>(up + i);
  pack<T, N> out_gate, out_up;
  for (int n = 0; n < N; ++n) {
    const float d = to_float(in_dy.element[n]), g = to_float(in_gate.element[n]),
                u = to_float(in_up.element[n]);
    const float s = 1.0f / (1.0f + expf(-g));
    out_gate.element[n] = from_float<T>(d * u * s * (1.0f + g * (1.0f - s)));
    out_up.element[n] = from_float<T>(d * g * s);
  }
  store(dgate + i, out_gate);
  store(dup + i, out_up);
}

struct as_it_is {
  __device__ float operator()(float x) const { return x; }
};

template <class Y, class X, class F>
void run1(rank& r, const char* name, Y* y, const X* x, std::size_t count, F f) {
  constexpr int n = wide<X>;
  if (packable<n>(count, x, y))
    launch(r, name, map1<n, Y, X, F>, ceil_div(count / n, block), block, 0, y, x, count, f);
  else launch(r, name, map1<1, Y, X, F>, ceil_div(count, block), block, 0, y, x, count, f);
}

template <class T, class F>
void run2(rank& r, const char* name, T* y, const T* a, const T* b, std::size_t count, F f) {
  constexpr int n = wide<T>;
  if (packable<n>(count, y, a, b))
    launch(r, name, map2<n, T, F>, ceil_div(count / n, block), block, 0, y, a, b, count, f);
  else launch(r, name, map2<1, T, F>, ceil_div(count, block), block, 0, y, a, b, count, f);
}

}  // namespace

template <class T>
void gelu(rank& r, at y, at x, std::size_t count) {
  run1(r, "gelu", r.at<T>(y), r.at<T>(x), count, gelu_of{});
}

template <class T>
void gelu_grad(rank& r, at dx, at dy, at x, std::size_t count) {
  run2(r, "gelu_grad", r.at<T>(dx), r.at<T>(dy), r.at<T>(x), count, gelu_grad_of{});
}

template <class T>
void swiglu(rank& r, at y, at gate, at up, std::size_t count) {
  run2(r, "swiglu", r.at<T>(y), r.at<T>(gate), r.at<T>(up), count, swiglu_of{});
}

template <class T>
void swiglu_grad(rank& r, at dgate, at dup, at dy, at gate, at up, std::size_t count) {
  T *dg = r.at<T>(dgate), *du = r.at<T>(dup), *d = r.at<T>(dy), *g = r.at<T>(gate), *u = r.at<T>(up);
  constexpr int n = wide<T>;
  if (packable<n>(count, dg, du, d, g, u))
    launch(r, "swiglu_grad", swiglu_backward<n, T>, ceil_div(count / n, block), block, 0, dg, du, d, g, u,
           count);
  else
    launch(r, "swiglu_grad", swiglu_backward<1, T>, ceil_div(count, block), block, 0, dg, du, d, g, u, count);
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

template void gelu<float>(rank&, at, at, std::size_t);
template void gelu<bf16>(rank&, at, at, std::size_t);
template void gelu_grad<float>(rank&, at, at, at, std::size_t);
template void gelu_grad<bf16>(rank&, at, at, at, std::size_t);
template void swiglu<float>(rank&, at, at, at, std::size_t);
template void swiglu<bf16>(rank&, at, at, at, std::size_t);
template void swiglu_grad<float>(rank&, at, at, at, at, at, std::size_t);
template void swiglu_grad<bf16>(rank&, at, at, at, at, at, std::size_t);
template void add<float>(rank&, at, at, at, std::size_t);
template void add<bf16>(rank&, at, at, at, std::size_t);
template void clear<float>(rank&, at, std::size_t);
template void clear<bf16>(rank&, at, std::size_t);

}  // namespace rankc::cuda
