// SPDX-License-Identifier: Apache-2.0
// Rotary positions, half-split form: element i of a head turns together with element i + dim / 2. A thread
// owns both halves of its pairs, so that y may be x. Source: Su et al. 2021.
#include <rankc/runtime/cuda/kernels.hpp>

#include "device.cuh"

namespace rankc::cuda {
namespace {

/// (a, b) -> (a cos - b sin, b cos + a sin), with sin negated for the gradient (`turn` = -1).
/// Shapes: x, y (tokens, heads, dim), table f32: cosines (seq, dim / 2), then sines; a block per token.
template <int N, class T>
__global__ void rotate(T* y, const T* x, const float* table, int heads, int dim, int seq, float turn) {
  const std::size_t token = blockIdx.x;
  const int half = dim / 2;
  const float* cosines = table + token % seq * half;
  const float* sines = cosines + static_cast<std::size_t>(seq) * half;
  for (int pair = threadIdx.x * N; pair < heads * half; pair += blockDim.x * N) {
    const int head = pair / half, i = pair % half;
    const std::size_t first = (token * heads + head) * dim + i, second = first + half;
    const auto a = load<T, N>(x + first);
    const auto b = load<T, N>(x + second);
    pack<T, N> out_a, out_b;
    for (int n = 0; n < N; ++n) {
      const float c = cosines[i + n], s = turn * sines[i + n];
      out_a.element[n] = from_float<T>(to_float(a.element[n]) * c - to_float(b.element[n]) * s);
      out_b.element[n] = from_float<T>(to_float(b.element[n]) * c + to_float(a.element[n]) * s);
    }
    store(y + first, out_a);
    store(y + second, out_b);
  }
}

template <class T>
void run(rank& r, const char* name, at y, at x, at table, int tokens, int heads, int dim, int seq,
         float turn) {
  T *to = r.at<T>(y), *from = r.at<T>(x);
  constexpr int n = wide<T>;
  const int pairs = heads * dim / 2;
  if (packable<n>(dim / 2, to, from))
    launch(r, name, rotate<n, T>, tokens, row_threads(pairs / n), 0, to, from, r.at<float>(table), heads, dim,
           seq, turn);
  else
    launch(r, name, rotate<1, T>, tokens, row_threads(pairs), 0, to, from, r.at<float>(table), heads, dim,
           seq, turn);
}

}  // namespace

template <class T>
void rope(rank& r, at y, at x, at table, int tokens, int heads, int dim, int seq) {
  run<T>(r, "rope", y, x, table, tokens, heads, dim, seq, 1.0f);
}

template <class T>
void rope_grad(rank& r, at dx, at dy, at table, int tokens, int heads, int dim, int seq) {
  run<T>(r, "rope_grad", dx, dy, table, tokens, heads, dim, seq, -1.0f);
}

template void rope<float>(rank&, at, at, at, int, int, int, int);
template void rope<bf16>(rank&, at, at, at, int, int, int, int);
template void rope_grad<float>(rank&, at, at, at, int, int, int, int);
template void rope_grad<bf16>(rank&, at, at, at, int, int, int, int);

}  // namespace rankc::cuda
