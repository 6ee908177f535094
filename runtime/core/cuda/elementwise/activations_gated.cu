// SPDX-License-Identifier: Apache-2.0
// SwiGLU over rows of gate and up that may be halves of one packed buffer.
// Source: Shazeer 2020.
#include <rankc/runtime/cuda/kernels.hpp>

#include "activations.cuh"
#include "../device/row_groups.cuh"

namespace rankc::runtime::cuda {
namespace {

constexpr int rows_each = 2;

/// y = silu(gate) up.
/// Shapes: y (tokens, width); gate, up (tokens, width), rows `stride` apart. Without gaps, y may be either.
template <int N, class T>
__global__ void __launch_bounds__(row_group_threads)
    swiglu_forward(T* y, const T* gate, const T* up, int tokens, int width, int stride) {
  const row_group<N, rows_each> part(width);
  pack<T, N> in_gate[rows_each], in_up[rows_each];
#pragma unroll
  for (int k = 0; k < rows_each; ++k)
    if (part.token + k < tokens) {
      in_gate[k] = load<T, N>(gate + (part.token + k) * stride + part.column);
      in_up[k] = load<T, N>(up + (part.token + k) * stride + part.column);
    }
#pragma unroll
  for (int k = 0; k < rows_each; ++k) {
    if (part.token + k >= tokens) return;
    float g[N], u[N];
    unpack(g, in_gate[k]);
    unpack(u, in_up[k]);
    for (int i = 0; i < N; ++i) g[i] = swiglu_of<T>(g[i], u[i]);
    store(y + (part.token + k) * width + part.column, packed<T>(g));
  }
}

/// The gradients of gate and of up.
/// Shapes: dy (tokens, width); the others (tokens, width), rows `stride` apart. dgate may be gate, dup up.
template <int N, class T>
__global__ void __launch_bounds__(row_group_threads)
    swiglu_backward(T* dgate, T* dup, const T* dy, const T* gate, const T* up, int tokens, int width,
                    int stride) {
  const row_group<N, rows_each> part(width);
  pack<T, N> in_dy[rows_each], in_gate[rows_each], in_up[rows_each];
#pragma unroll
  for (int k = 0; k < rows_each; ++k)
    if (part.token + k < tokens) {
      in_dy[k] = load<T, N>(dy + (part.token + k) * width + part.column);
      in_gate[k] = load<T, N>(gate + (part.token + k) * stride + part.column);
      in_up[k] = load<T, N>(up + (part.token + k) * stride + part.column);
    }
#pragma unroll
  for (int k = 0; k < rows_each; ++k) {
    if (part.token + k >= tokens) return;
    float d[N], g[N], u[N];
    unpack(d, in_dy[k]);
    unpack(g, in_gate[k]);
    unpack(u, in_up[k]);
    for (int i = 0; i < N; ++i) take_swiglu_grad<T>(d[i], g[i], u[i]);
    store(dgate + (part.token + k) * stride + part.column, packed<T>(g));
    store(dup + (part.token + k) * stride + part.column, packed<T>(u));
  }
}

template <int N, class... T>
bool rows_packable(int width, int stride, const T*... at) {
  return stride % N == 0 && packable<N>(width, at...);
}

}  // namespace

template <class T>
void swiglu(const lane& on, at y, at gate, at up, int tokens, int width, int stride) {
  T *to = on.at<T>(y), *g = on.at<T>(gate), *u = on.at<T>(up);
  constexpr int n = wide<T>;
  if (rows_packable<n>(width, stride, to, g, u))
    launch(on, "swiglu", swiglu_forward<n, T>, row_group_blocks<n, rows_each>(tokens, width),
           row_group_threads, 0, to, g, u, tokens, width, stride);
  else
    launch(on, "swiglu", swiglu_forward<1, T>, row_group_blocks<1, rows_each>(tokens, width),
           row_group_threads, 0, to, g, u, tokens, width, stride);
}

template <class T>
void swiglu_grad(const lane& on, at dgate, at dup, at dy, at gate, at up, int tokens, int width, int stride) {
  T *dg = on.at<T>(dgate), *du = on.at<T>(dup), *d = on.at<T>(dy), *g = on.at<T>(gate), *u = on.at<T>(up);
  constexpr int n = wide<T>;
  if (rows_packable<n>(width, stride, dg, du, d, g, u))
    launch(on, "swiglu_grad", swiglu_backward<n, T>, row_group_blocks<n, rows_each>(tokens, width),
           row_group_threads, 0, dg, du, d, g, u, tokens, width, stride);
  else
    launch(on, "swiglu_grad", swiglu_backward<1, T>, row_group_blocks<1, rows_each>(tokens, width),
           row_group_threads, 0, dg, du, d, g, u, tokens, width, stride);
}

template void swiglu<float>(const lane&, at, at, at, int, int, int);
template void swiglu<bf16>(const lane&, at, at, at, int, int, int);
template void swiglu_grad<float>(const lane&, at, at, at, at, at, int, int, int);
template void swiglu_grad<bf16>(const lane&, at, at, at, at, at, int, int, int);

}  // namespace rankc::runtime::cuda
