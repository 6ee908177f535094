// SPDX-License-Identifier: Apache-2.0
// Layer norm and RMS norm over the last dim, and their gradients. Sums over a row are in f64.
#include "column_sums.hpp"

#include <rankc/runtime/host/kernels.hpp>

#include <cmath>

namespace rankc::runtime::host {

template <class T>
void layer_norm(const lane& on, at y, at stats, at x, at gain, at shift, int tokens, int width, double eps) {
  const T *scale = on.at<T>(gain), *offset = on.at<T>(shift);
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T* from = on.at<T>(x) + n * width;
    T* to = on.at<T>(y) + n * width;
    double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (int c = 0; c < width; ++c) sum += static_cast<double>(from[c]);
    const double mean = sum / width;
#pragma omp simd reduction(+ : squares)
    for (int c = 0; c < width; ++c) {
      const double centred = static_cast<double>(from[c]) - mean;
      squares += centred * centred;
    }
    const T m = static_cast<T>(mean), rstd = static_cast<T>(1 / std::sqrt(squares / width + eps));
    on.at<T>(stats)[2 * n] = m;
    on.at<T>(stats)[2 * n + 1] = rstd;
#pragma omp simd
    for (int c = 0; c < width; ++c) to[c] = (from[c] - m) * rstd * scale[c] + offset[c];
  }
}

// With g = dy gain and xhat = (x - mean) rstd: dx = rstd (g - mean(g) - xhat mean(g xhat)).
template <class T>
void layer_norm_dx(const lane& on, at dx, at dy, at x, at stats, at gain, int tokens, int width) {
  const T* scale = on.at<T>(gain);
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T *from = on.at<T>(x) + n * width, *grad = on.at<T>(dy) + n * width;
    T* to = on.at<T>(dx) + n * width;
    const T mean = on.at<T>(stats)[2 * n], rstd = on.at<T>(stats)[2 * n + 1];
    double sum = 0, dot = 0;
#pragma omp simd reduction(+ : sum, dot)
    for (int c = 0; c < width; ++c) {
      const T g = grad[c] * scale[c];
      sum += static_cast<double>(g);
      dot += static_cast<double>(g * ((from[c] - mean) * rstd));
    }
    const T mean_g = static_cast<T>(sum / width), mean_dot = static_cast<T>(dot / width);
#pragma omp simd
    for (int c = 0; c < width; ++c)
      to[c] = rstd * (grad[c] * scale[c] - mean_g - (from[c] - mean) * rstd * mean_dot);
  }
}

template <class T>
void layer_norm_dw(const lane& on, at dgain, at dshift, at dy, at x, at stats, int tokens, int width,
                   bool accumulate) {
  const T *grad = on.at<T>(dy), *from = on.at<T>(x), *stat = on.at<T>(stats);
  column_sums(on.at<T>(dgain), 0, tokens, 1, width, accumulate, [=](std::size_t n, int c) {
    return grad[n * width + c] * ((from[n * width + c] - stat[2 * n]) * stat[2 * n + 1]);
  });
  column_sums(on.at<T>(dshift), 0, tokens, 1, width, accumulate,
              [=](std::size_t n, int c) { return grad[n * width + c]; });
}

template <class T>
void rms_norm(const lane& on, at y, at stats, at x, at gain, int tokens, int width, double eps) {
  const T* scale = on.at<T>(gain);
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T* from = on.at<T>(x) + n * width;
    T* to = on.at<T>(y) + n * width;
    double squares = 0;
#pragma omp simd reduction(+ : squares)
    for (int c = 0; c < width; ++c) squares += static_cast<double>(from[c]) * static_cast<double>(from[c]);
    const T rrms = static_cast<T>(1 / std::sqrt(squares / width + eps));
    on.at<T>(stats)[n] = rrms;
#pragma omp simd
    for (int c = 0; c < width; ++c) to[c] = from[c] * rrms * scale[c];
  }
}

// With g = dy gain and xhat = x rrms: dx = rrms (g - xhat mean(g xhat)).
template <class T>
void rms_norm_dx(const lane& on, at dx, at dy, at x, at stats, at gain, int tokens, int width) {
  const T* scale = on.at<T>(gain);
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T *from = on.at<T>(x) + n * width, *grad = on.at<T>(dy) + n * width;
    T* to = on.at<T>(dx) + n * width;
    const T rrms = on.at<T>(stats)[n];
    double dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int c = 0; c < width; ++c) dot += static_cast<double>(grad[c] * scale[c] * (from[c] * rrms));
    const T mean_dot = static_cast<T>(dot / width);
#pragma omp simd
    for (int c = 0; c < width; ++c) to[c] = rrms * (grad[c] * scale[c] - from[c] * rrms * mean_dot);
  }
}

template <class T>
void rms_norm_dw(const lane& on, at dgain, at dy, at x, at stats, int tokens, int width, bool accumulate) {
  const T *grad = on.at<T>(dy), *from = on.at<T>(x), *stat = on.at<T>(stats);
  column_sums(on.at<T>(dgain), 0, tokens, 1, width, accumulate,
              [=](std::size_t n, int c) { return grad[n * width + c] * (from[n * width + c] * stat[n]); });
}

template decltype(layer_norm<float>) layer_norm<float>;
template decltype(layer_norm<double>) layer_norm<double>;
template decltype(layer_norm_dx<float>) layer_norm_dx<float>;
template decltype(layer_norm_dx<double>) layer_norm_dx<double>;
template decltype(layer_norm_dw<float>) layer_norm_dw<float>;
template decltype(layer_norm_dw<double>) layer_norm_dw<double>;
template decltype(rms_norm<float>) rms_norm<float>;
template decltype(rms_norm<double>) rms_norm<double>;
template decltype(rms_norm_dx<float>) rms_norm_dx<float>;
template decltype(rms_norm_dx<double>) rms_norm_dx<double>;
template decltype(rms_norm_dw<float>) rms_norm_dw<float>;
template decltype(rms_norm_dw<double>) rms_norm_dw<double>;

}  // namespace rankc::runtime::host
