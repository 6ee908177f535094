// SPDX-License-Identifier: Apache-2.0
// Softmax of whole rows. Sums over a row are in f64.
#include "exp.hpp"

#include <rankc/runtime/host/kernels.hpp>

namespace rankc::runtime::host {

template <class T>
void softmax(const lane& on, at y, at x, int tokens, int width) {
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T* from = on.at<T>(x) + n * width;
    T* to = on.at<T>(y) + n * width;
    T largest = from[0];
#pragma omp simd reduction(max : largest)
    for (int c = 1; c < width; ++c) largest = from[c] > largest ? from[c] : largest;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int c = 0; c < width; ++c) sum += static_cast<double>(exponential(from[c] - largest));
    const T part = static_cast<T>(1 / sum);
#pragma omp simd
    for (int c = 0; c < width; ++c) to[c] = exponential(from[c] - largest) * part;
  }
}

// dx = y (dy - sum(dy y)).
template <class T>
void softmax_dx(const lane& on, at dx, at dy, at y, int tokens, int width) {
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T *made = on.at<T>(y) + n * width, *grad = on.at<T>(dy) + n * width;
    T* to = on.at<T>(dx) + n * width;
    double dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int c = 0; c < width; ++c) dot += static_cast<double>(grad[c] * made[c]);
    const T mean = static_cast<T>(dot);
#pragma omp simd
    for (int c = 0; c < width; ++c) to[c] = made[c] * (grad[c] - mean);
  }
}

template decltype(softmax<float>) softmax<float>;
template decltype(softmax<double>) softmax<double>;
template decltype(softmax_dx<float>) softmax_dx<float>;
template decltype(softmax_dx<double>) softmax_dx<double>;

}  // namespace rankc::runtime::host
