// SPDX-License-Identifier: Apache-2.0
// Softmax of whole rows, with one block for each row.
#include <rankc/runtime/cuda/kernels.hpp>

#include "cross_entropy_rows.cuh"

namespace rankc::runtime::cuda {
namespace {

/// y = exp(x - max) / sum. y may be x.
/// Shapes: x, y (tokens, width).
template <int N, class T>
__global__ void __launch_bounds__(logits_threads, logits_blocks) softmax_rows(T* y, const T* x, int width) {
  const std::size_t begin = std::size_t{blockIdx.x} * width;
  float most = -INFINITY, sum = 0.0f;
  walk_row<N>(x + begin, width, [&](int, const pack<T, N>& in) {
    for (int i = 0; i < N; ++i) most = fmaxf(most, to_float(in.element[i]));
  });
  most = block_max(most);
  const exp_from<T> weight(most);
  walk_row<N>(x + begin, width, [&](int, const pack<T, N>& in) {
    for (int i = 0; i < N; ++i) sum += weight(to_float(in.element[i]));
  });
  const float part = 1.0f / block_sum(sum);
  walk_row<N>(x + begin, width, [&](int c, const pack<T, N>& in) {
    float out[N];
    for (int i = 0; i < N; ++i) out[i] = weight(to_float(in.element[i])) * part;
    store(y + begin + c, packed<T>(out));
  });
}

/// dx = y (dy - sum(dy y)). dx may be dy.
/// Shapes: dx, dy, y (tokens, width).
template <int N, class T>
__global__ void __launch_bounds__(logits_threads, logits_blocks)
    softmax_rows_backward(T* dx, const T* dy, const T* y, int width) {
  const std::size_t begin = std::size_t{blockIdx.x} * width;
  float dot = 0.0f;
  walk_row<N>(dy + begin, width, [&](int c, const pack<T, N>& in) {
    const auto made = load<T, N>(y + begin + c);
    for (int i = 0; i < N; ++i) dot += to_float(in.element[i]) * to_float(made.element[i]);
  });
  dot = block_sum(dot);
  walk_row<N>(dy + begin, width, [&](int c, const pack<T, N>& in) {
    float out[N], made[N];
    unpack(out, in);
    unpack(made, load<T, N>(y + begin + c));
    for (int i = 0; i < N; ++i) out[i] = made[i] * (out[i] - dot);
    store(dx + begin + c, packed<T>(out));
  });
}

}  // namespace

template <class T>
void softmax(const lane& on, at y, at x, int tokens, int width) {
  T *to = on.at<T>(y), *row = on.at<T>(x);
  launch_rows<T>(on, "softmax", softmax_rows<wide<T>, T>, softmax_rows<1, T>,
                 packable<wide<T>>(width, to, row), tokens, width, to, row, width);
}

template <class T>
void softmax_dx(const lane& on, at dx, at dy, at y, int tokens, int width) {
  T *to = on.at<T>(dx), *d = on.at<T>(dy), *made = on.at<T>(y);
  launch_rows<T>(on, "softmax_dx", softmax_rows_backward<wide<T>, T>, softmax_rows_backward<1, T>,
                 packable<wide<T>>(width, to, d, made), tokens, width, to, d, made, width);
}

template void softmax<float>(const lane&, at, at, int, int);
template void softmax<bf16>(const lane&, at, at, int, int);
template void softmax_dx<float>(const lane&, at, at, at, int, int);
template void softmax_dx<bf16>(const lane&, at, at, at, int, int);

}  // namespace rankc::runtime::cuda
