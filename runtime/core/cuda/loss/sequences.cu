// SPDX-License-Identifier: Apache-2.0
// Means of sequences over their tokens, and the squared error.
#include <rankc/runtime/cuda/kernels.hpp>

#include "../device/device.cuh"

namespace rankc::runtime::cuda {
namespace {

constexpr int mean_threads = 256, error_threads = 1024;

/// y[row][c] = sum over the row's tokens of x[n][c], divided by seq, in token order. A thread computes one
/// element.
/// Shapes: y (rows, width), x (rows * each, width).
template <class T>
__global__ void means(T* y, const T* x, int rows, int each, int width, float seq) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= static_cast<std::size_t>(rows) * width) return;
  const T* from = x + i / width * each * width + i % width;
  float sum = 0.0f;
#pragma unroll 8
  for (int n = 0; n < each; ++n) sum += to_float(from[static_cast<std::size_t>(n) * width]);
  y[i] = from_float<T>(sum / seq);
}

/// dx[n][c] = dy[row of n][c] / seq.
/// Shapes: dx (rows * each, width), dy (rows, width).
template <class T>
__global__ void means_backward(T* dx, const T* dy, std::size_t count, int each, int width, float seq) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) return;
  const std::size_t row = i / width / each;
  dx[i] = from_float<T>(to_float(dy[row * width + i % width]) / seq);
}

/// loss = or += scale * sum of (x - targets)^2, by one block.
/// Shapes: x, targets (count).
template <class T>
__global__ void error_of(float* loss, const T* x, const float* targets, std::size_t count, float scale,
                         bool accumulate) {
  float sum = 0.0f;
  for (std::size_t i = threadIdx.x; i < count; i += error_threads) {
    const float apart = to_float(x[i]) - targets[i];
    sum += apart * apart;
  }
  sum = block_sum(sum);
  if (threadIdx.x == 0) *loss = (accumulate ? *loss : 0.0f) + scale * sum;
}

/// dx = 2 scale (x - targets). dx may be x.
/// Shapes: dx, x, targets (count).
template <class T>
__global__ void error_backward(T* dx, const T* x, const float* targets, std::size_t count, float scale) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i < count) dx[i] = from_float<T>(2.0f * scale * (to_float(x[i]) - targets[i]));
}

}  // namespace

template <class T>
void sequence_mean(const lane& on, at y, at x, int tokens, int width, int rows, int seq) {
  const std::size_t count = static_cast<std::size_t>(rows) * width;
  launch(on, "sequence_mean", means<T>, ceil_div(count, mean_threads), mean_threads, 0, on.at<T>(y),
         on.at<T>(x), rows, tokens / rows, width, static_cast<float>(seq));
}

template <class T>
void sequence_mean_grad(const lane& on, at dx, at dy, at, int tokens, int width, int rows, int seq) {
  const std::size_t count = static_cast<std::size_t>(tokens) * width;
  launch(on, "sequence_mean_grad", means_backward<T>, ceil_div(count, mean_threads), mean_threads, 0,
         on.at<T>(dx), on.at<T>(dy), count, tokens / rows, width, static_cast<float>(seq));
}

template <class T>
void squared_error(const lane& on, at loss, at x, at targets, std::size_t count, double scale,
                   bool accumulate) {
  launch(on, "squared_error", error_of<T>, 1, error_threads, 0, on.at<float>(loss), on.at<T>(x),
         on.at<float>(targets), count, static_cast<float>(scale), accumulate);
}

template <class T>
void squared_error_grad(const lane& on, at dx, at x, at targets, std::size_t count, double scale) {
  launch(on, "squared_error_grad", error_backward<T>, ceil_div(count, mean_threads), mean_threads, 0,
         on.at<T>(dx), on.at<T>(x), on.at<float>(targets), count, static_cast<float>(scale));
}

template void sequence_mean<float>(const lane&, at, at, int, int, int, int);
template void sequence_mean<bf16>(const lane&, at, at, int, int, int, int);
template void sequence_mean_grad<float>(const lane&, at, at, at, int, int, int, int);
template void sequence_mean_grad<bf16>(const lane&, at, at, at, int, int, int, int);
template void squared_error<float>(const lane&, at, at, at, std::size_t, double, bool);
template void squared_error<bf16>(const lane&, at, at, at, std::size_t, double, bool);
template void squared_error_grad<float>(const lane&, at, at, at, std::size_t, double);
template void squared_error_grad<bf16>(const lane&, at, at, at, std::size_t, double);

}  // namespace rankc::runtime::cuda
