// SPDX-License-Identifier: Apache-2.0
// The optimizer step over flat regions: gradient norm, AdamW, and clearing.
#include <rankc/runtime/host/kernels.hpp>

#include <algorithm>
#include <cmath>

namespace rankc::host {

template <class T>
void sum_squares(const lane& on, at total, at gradients, std::span<const range> ranges, bool accumulate) {
  double sum = 0;
  for (const range& of : ranges) {
    const T* grad = on.at<T>(gradients) + of.first;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < of.count; ++i) sum += static_cast<double>(grad[i]) * static_cast<double>(grad[i]);
  }
  T& out = *on.at<T>(total);
  out = static_cast<T>((accumulate ? static_cast<double>(out) : 0.0) + sum);
}

template <class T>
void adamw(const lane& on, at weights, at gradients, at first_moment, at second_moment, at norm_squared,
           std::span<const range> ranges) {
  const step_input& in = on.of->input;
  double clip = 1;
  if (in.clip > 0) {
    clip = in.clip / (std::sqrt(static_cast<double>(*on.at<T>(norm_squared))) + 1e-6);
    if (clip > 1) clip = 1;  // a NaN norm stays NaN and is seen in the weights
  }
  const double step = static_cast<double>(in.step);
  const T scale = static_cast<T>(clip);
  const T beta1 = static_cast<T>(in.beta1), rest1 = static_cast<T>(1 - in.beta1);
  const T beta2 = static_cast<T>(in.beta2), rest2 = static_cast<T>(1 - in.beta2);
  const T size = static_cast<T>(in.lr / (1 - std::pow(in.beta1, step)));
  const T root = static_cast<T>(std::sqrt(1 - std::pow(in.beta2, step))), eps = static_cast<T>(in.eps);
  for (const range& of : ranges) {
    const T keep = static_cast<T>(of.decay ? 1 - in.lr * in.weight_decay : 1);
    T *weight = on.at<T>(weights) + of.first, *first = on.at<T>(first_moment) + of.first,
      *second = on.at<T>(second_moment) + of.first;
    const T* gradient = on.at<T>(gradients) + of.first;
#pragma omp simd
    for (std::size_t i = 0; i < of.count; ++i) {
      const T grad = gradient[i] * scale;
      first[i] = beta1 * first[i] + rest1 * grad;
      second[i] = beta2 * second[i] + rest2 * grad * grad;
      weight[i] = weight[i] * keep - size * first[i] / (std::sqrt(second[i]) / root + eps);
    }
  }
}

template <class T>
void clear(const lane& on, at out, std::size_t count) {
  std::fill_n(on.at<T>(out), count, T(0));
}

template <class T>
void copy(const lane& on, at y, at x, std::size_t count) {
  std::copy_n(on.at<T>(x), count, on.at<T>(y));
}

template decltype(sum_squares<float>) sum_squares<float>;
template decltype(sum_squares<double>) sum_squares<double>;
template decltype(adamw<float>) adamw<float>;
template decltype(adamw<double>) adamw<double>;
template decltype(clear<float>) clear<float>;
template decltype(clear<double>) clear<double>;
template decltype(copy<float>) copy<float>;
template decltype(copy<double>) copy<double>;

}  // namespace rankc::host
