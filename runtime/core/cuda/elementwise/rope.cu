// SPDX-License-Identifier: Apache-2.0
// Rotary positions, half-split form: element i of a head is rotated together with element i + dim / 2. A
// thread owns both halves of its pairs, so y may be x.
// Source: Su et al. 2021.
#include <rankc/runtime/cuda/kernels.hpp>

#include "../device/device.cuh"

namespace rankc::runtime::cuda {
namespace {

/// (a, b) -> (a cos - b sin, b cos + a sin), with sin negated for the gradient (`turn` = -1). A thread has N
/// neighbouring pairs.
/// Shapes: x, y (tokens, heads, dim), tokens `stride` apart; table f32: cosines (seq, dim / 2), then sines.
template <int N, class T>
__global__ void __launch_bounds__(block_size) rotate(T* y, const T* x, const float* table, int tokens,
                                                     int heads, int dim, int seq, int stride, float turn) {
  constexpr int n_table = N < 4 ? N : 4;
  const int half = dim / 2;
  const unsigned lanes = static_cast<unsigned>(half) / N, of_token = lanes * heads;
  const unsigned item = blockIdx.x * block_size + threadIdx.x, token = item / of_token,
                 rest = item % of_token;
  if (token >= static_cast<unsigned>(tokens)) return;
  const int i = static_cast<int>(rest % lanes) * N, head = static_cast<int>(rest / lanes);
  const std::size_t begin = std::size_t{token} * stride + head * dim + i;
  const auto a = load<T, N>(x + begin), b = load<T, N>(x + begin + half);
  const float* angles = table + std::size_t{token % seq} * half + i;
  float cosine[N], sine[N];
  for (int n = 0; n < N; n += n_table) {
    const auto c = load<float, n_table>(angles + n);
    const auto s = load<float, n_table>(angles + static_cast<std::size_t>(seq) * half + n);
    for (int j = 0; j < n_table; ++j) {
      cosine[n + j] = c.element[j];
      sine[n + j] = turn * s.element[j];
    }
  }
  float first[N], second[N], turned[N];
  unpack(first, a);
  unpack(second, b);
  for (int n = 0; n < N; ++n) turned[n] = first[n] * cosine[n] - second[n] * sine[n];
  for (int n = 0; n < N; ++n) second[n] = second[n] * cosine[n] + first[n] * sine[n];
  store(y + begin, packed<T>(turned));
  store(y + begin + half, packed<T>(second));
}

template <class T>
void run(const lane& on, const char* name, at y, at x, at table, int tokens, int heads, int dim, int seq,
         int stride, float turn) {
  T *to = on.at<T>(y), *from = on.at<T>(x);
  float* angles = on.at<float>(table);
  constexpr int n = wide<T>;
  const std::size_t pairs = static_cast<std::size_t>(tokens) * heads * (dim / 2);
  if (stride % n == 0 && packable<n>(dim / 2, to, from) && packable<4>(dim / 2, angles))
    launch(on, name, rotate<n, T>, ceil_div(pairs / n, block_size), block_size, 0, to, from, angles, tokens,
           heads, dim, seq, stride, turn);
  else
    launch(on, name, rotate<1, T>, ceil_div(pairs, block_size), block_size, 0, to, from, angles, tokens,
           heads, dim, seq, stride, turn);
}

}  // namespace

template <class T>
void rope(const lane& on, at y, at x, at table, int tokens, int heads, int dim, int seq, int stride) {
  run<T>(on, "rope", y, x, table, tokens, heads, dim, seq, stride, 1.0f);
}

template <class T>
void rope_grad(const lane& on, at dx, at dy, at table, int tokens, int heads, int dim, int seq, int stride) {
  run<T>(on, "rope_grad", dx, dy, table, tokens, heads, dim, seq, stride, -1.0f);
}

template void rope<float>(const lane&, at, at, at, int, int, int, int, int);
template void rope<bf16>(const lane&, at, at, at, int, int, int, int, int);
template void rope_grad<float>(const lane&, at, at, at, int, int, int, int, int);
template void rope_grad<bf16>(const lane&, at, at, at, int, int, int, int, int);

}  // namespace rankc::runtime::cuda
