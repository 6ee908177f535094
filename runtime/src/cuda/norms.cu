// SPDX-License-Identifier: Apache-2.0
// LayerNorm and RMSNorm over the last dim. Forward and the gradient of x take a block per token and walk its
// row two or three times, out of L1 after the first; the gradients of gain and shift are column sums. Source:
// Ba et al. 2016; Zhang and Sennrich 2019.
#include <rankc/runtime/cuda/kernels.hpp>

#include "column_sums.cuh"

namespace rankc::cuda {
namespace {

constexpr float eps = 1e-5f;

/// y = (x - mean) / std * gain + shift.
/// Shapes: x, y (tokens, width), stats f32 (tokens, 2) mean and 1/std, gain, shift (width).
template <int N, class T>
__global__ void layer_norm_forward(T* y, float* stats, const T* x, const T* gain, const T* shift, int width) {
  const std::size_t token = blockIdx.x;
  x += token * width;
  y += token * width;
  float sum = 0.0f;
  for (int c = threadIdx.x * N; c < width; c += blockDim.x * N) {
    const auto row = load<T, N>(x + c);
    for (int i = 0; i < N; ++i) sum += to_float(row.element[i]);
  }
  const float mean = block_sum(sum) / width;
  float squares = 0.0f;
  for (int c = threadIdx.x * N; c < width; c += blockDim.x * N) {
    const auto row = load<T, N>(x + c);
    for (int i = 0; i < N; ++i) {
      const float centred = to_float(row.element[i]) - mean;
      squares += centred * centred;
    }
  }
  const float inverse_std = 1.0f / sqrtf(block_sum(squares) / width + eps);
  for (int c = threadIdx.x * N; c < width; c += blockDim.x * N) {
    const auto row = load<T, N>(x + c);
    const auto g = load<T, N>(gain + c);
    const auto s = load<T, N>(shift + c);
    pack<T, N> out;
    for (int i = 0; i < N; ++i)
      out.element[i] = from_float<T>(
          (to_float(row.element[i]) - mean) * inverse_std * to_float(g.element[i]) + to_float(s.element[i]));
    store(y + c, out);
  }
  if (threadIdx.x == 0) {
    stats[2 * token] = mean;
    stats[2 * token + 1] = inverse_std;
  }
}

/// y = x / rms * gain.
/// Shapes: x, y (tokens, width), stats f32 (tokens) 1/rms, gain (width).
template <int N, class T>
__global__ void rms_norm_forward(T* y, float* stats, const T* x, const T* gain, int width) {
  const std::size_t token = blockIdx.x;
  x += token * width;
  y += token * width;
  float squares = 0.0f;
  for (int c = threadIdx.x * N; c < width; c += blockDim.x * N) {
    const auto row = load<T, N>(x + c);
    for (int i = 0; i < N; ++i) squares += to_float(row.element[i]) * to_float(row.element[i]);
  }
  const float inverse_rms = 1.0f / sqrtf(block_sum(squares) / width + eps);
  for (int c = threadIdx.x * N; c < width; c += blockDim.x * N) {
    const auto row = load<T, N>(x + c);
    const auto g = load<T, N>(gain + c);
    pack<T, N> out;
    for (int i = 0; i < N; ++i)
      out.element[i] = from_float<T>(to_float(row.element[i]) * inverse_rms * to_float(g.element[i]));
    store(y + c, out);
  }
  if (threadIdx.x == 0) stats[token] = inverse_rms;
}

/// dx = s (e - mean(e) - xhat mean(e xhat)), with e = dy gain, xhat = (x - m) s; RMSNorm has m = 0 and no
/// mean(e). Shapes: dx, dy, x (tokens, width), stats as forward saved them, gain (width). dx may be dy.
template <bool Centred, int N, class T>
__global__ void norm_dx(T* dx, const T* dy, const T* x, const float* stats, const T* gain, int width) {
  const std::size_t token = blockIdx.x;
  dx += token * width;
  dy += token * width;
  x += token * width;
  const float mean = Centred ? stats[2 * token] : 0.0f;
  const float scale = Centred ? stats[2 * token + 1] : stats[token];
  float sum = 0.0f, product = 0.0f;
  for (int c = threadIdx.x * N; c < width; c += blockDim.x * N) {
    const auto d = load<T, N>(dy + c);
    const auto row = load<T, N>(x + c);
    const auto g = load<T, N>(gain + c);
    for (int i = 0; i < N; ++i) {
      const float e = to_float(d.element[i]) * to_float(g.element[i]);
      sum += e;
      product += e * (to_float(row.element[i]) - mean) * scale;
    }
  }
  const float mean_e = Centred ? block_sum(sum) / width : 0.0f;
  const float mean_product = block_sum(product) / width;
  for (int c = threadIdx.x * N; c < width; c += blockDim.x * N) {
    const auto d = load<T, N>(dy + c);
    const auto row = load<T, N>(x + c);
    const auto g = load<T, N>(gain + c);
    pack<T, N> out;
    for (int i = 0; i < N; ++i) {
      const float e = to_float(d.element[i]) * to_float(g.element[i]);
      const float hat = (to_float(row.element[i]) - mean) * scale;
      out.element[i] = from_float<T>(scale * (e - mean_e - hat * mean_product));
    }
    store(dx + c, out);
  }
}

/// dgain sums dy xhat, dshift sums dy.
template <class T>
struct layer_norm_term {
  static constexpr int outputs = 2;
  const T *dy, *x;
  const float* stats;
  int width;
  template <int N>
  __device__ void add(float (&sum)[2][N], int n, int c) const {
    const auto d = load<T, N>(dy + static_cast<std::size_t>(n) * width + c);
    const auto row = load<T, N>(x + static_cast<std::size_t>(n) * width + c);
    const float mean = stats[2 * static_cast<std::size_t>(n)],
                scale = stats[2 * static_cast<std::size_t>(n) + 1];
    for (int i = 0; i < N; ++i) {
      sum[0][i] += to_float(d.element[i]) * (to_float(row.element[i]) - mean) * scale;
      sum[1][i] += to_float(d.element[i]);
    }
  }
};

template <class T>
struct rms_norm_term {
  static constexpr int outputs = 1;
  const T *dy, *x;
  const float* stats;
  int width;
  template <int N>
  __device__ void add(float (&sum)[1][N], int n, int c) const {
    const auto d = load<T, N>(dy + static_cast<std::size_t>(n) * width + c);
    const auto row = load<T, N>(x + static_cast<std::size_t>(n) * width + c);
    for (int i = 0; i < N; ++i) sum[0][i] += to_float(d.element[i]) * to_float(row.element[i]) * stats[n];
  }
};

template <bool Centred, class T>
void run_norm_dx(rank& r, const char* name, at dx, at dy, at x, at stats, at gain, int tokens, int width) {
  T *to = r.at<T>(dx), *d = r.at<T>(dy), *row = r.at<T>(x), *g = r.at<T>(gain);
  constexpr int n = wide<T>;
  if (packable<n>(width, to, d, row, g))
    launch(r, name, norm_dx<Centred, n, T>, tokens, row_threads(width / n), 0, to, d, row, r.at<float>(stats),
           g, width);
  else
    launch(r, name, norm_dx<Centred, 1, T>, tokens, row_threads(width), 0, to, d, row, r.at<float>(stats), g,
           width);
}

}  // namespace

template <class T>
void layer_norm(rank& r, at y, at stats, at x, at gain, at shift, int tokens, int width) {
  T *to = r.at<T>(y), *row = r.at<T>(x), *g = r.at<T>(gain), *s = r.at<T>(shift);
  constexpr int n = wide<T>;
  if (packable<n>(width, to, row, g, s))
    launch(r, "layer_norm", layer_norm_forward<n, T>, tokens, row_threads(width / n), 0, to,
           r.at<float>(stats), row, g, s, width);
  else
    launch(r, "layer_norm", layer_norm_forward<1, T>, tokens, row_threads(width), 0, to, r.at<float>(stats),
           row, g, s, width);
}

template <class T>
void layer_norm_dx(rank& r, at dx, at dy, at x, at stats, at gain, int tokens, int width) {
  run_norm_dx<true, T>(r, "layer_norm_dx", dx, dy, x, stats, gain, tokens, width);
}

template <class T>
void layer_norm_dw(rank& r, at dgain, at dshift, at dy, at x, at stats, int tokens, int width,
                   bool accumulate) {
  const T *d = r.at<T>(dy), *row = r.at<T>(x);
  column_sums(r, "layer_norm_dw", {r.at<float>(dgain), r.at<float>(dshift)},
              layer_norm_term<T>{d, row, r.at<float>(stats), width}, tokens, width,
              packable<4>(width, d, row), accumulate);
}

template <class T>
void rms_norm(rank& r, at y, at stats, at x, at gain, int tokens, int width) {
  T *to = r.at<T>(y), *row = r.at<T>(x), *g = r.at<T>(gain);
  constexpr int n = wide<T>;
  if (packable<n>(width, to, row, g))
    launch(r, "rms_norm", rms_norm_forward<n, T>, tokens, row_threads(width / n), 0, to, r.at<float>(stats),
           row, g, width);
  else
    launch(r, "rms_norm", rms_norm_forward<1, T>, tokens, row_threads(width), 0, to, r.at<float>(stats), row,
           g, width);
}

template <class T>
void rms_norm_dx(rank& r, at dx, at dy, at x, at stats, at gain, int tokens, int width) {
  run_norm_dx<false, T>(r, "rms_norm_dx", dx, dy, x, stats, gain, tokens, width);
}

template <class T>
void rms_norm_dw(rank& r, at dgain, at dy, at x, at stats, int tokens, int width, bool accumulate) {
  const T *d = r.at<T>(dy), *row = r.at<T>(x);
  column_sums(r, "rms_norm_dw", {r.at<float>(dgain)}, rms_norm_term<T>{d, row, r.at<float>(stats), width},
              tokens, width, packable<4>(width, d, row), accumulate);
}

template void layer_norm<float>(rank&, at, at, at, at, at, int, int);
template void layer_norm<bf16>(rank&, at, at, at, at, at, int, int);
template void layer_norm_dx<float>(rank&, at, at, at, at, at, int, int);
template void layer_norm_dx<bf16>(rank&, at, at, at, at, at, int, int);
template void layer_norm_dw<float>(rank&, at, at, at, at, at, int, int, bool);
template void layer_norm_dw<bf16>(rank&, at, at, at, at, at, int, int, bool);
template void rms_norm<float>(rank&, at, at, at, at, int, int);
template void rms_norm<bf16>(rank&, at, at, at, at, int, int);
template void rms_norm_dx<float>(rank&, at, at, at, at, at, int, int);
template void rms_norm_dx<bf16>(rank&, at, at, at, at, at, int, int);
template void rms_norm_dw<float>(rank&, at, at, at, at, int, int, bool);
template void rms_norm_dw<bf16>(rank&, at, at, at, at, int, int, bool);

}  // namespace rankc::cuda
