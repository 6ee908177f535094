// SPDX-License-Identifier: Apache-2.0
// Linear layers and biases, and their gradients.
#include "column_sums.hpp"
#include "gemm.hpp"

#include <rankc/runtime/host/kernels.hpp>

namespace rankc::runtime::host {

template <class T>
void linear(const lane& on, at y, at x, at w, int tokens, int in, int out) {
  gemm(form::plain, form::transposed, tokens, out, in, T(1), on.at<T>(x), in, on.at<T>(w), in, T(0),
       on.at<T>(y), out);
}

template <class T>
void linear_dx(const lane& on, at dx, at dy, at w, int tokens, int in, int out, bool accumulate) {
  gemm(form::plain, form::plain, tokens, in, out, T(1), on.at<T>(dy), out, on.at<T>(w), in, T(accumulate),
       on.at<T>(dx), in);
}

template <class T>
void linear_dw(const lane& on, at dw, at dy, at x, int tokens, int in, int out, bool accumulate) {
  gemm(form::transposed, form::plain, out, in, tokens, T(1), on.at<T>(dy), out, on.at<T>(x), in,
       T(accumulate), on.at<T>(dw), in);
}

template <class T>
void bias(const lane& on, at y, at x, at b, int tokens, int width) {
  const T* shift = on.at<T>(b);
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    T* to = on.at<T>(y) + n * width;
    const T* from = on.at<T>(x) + n * width;
#pragma omp simd
    for (int c = 0; c < width; ++c) to[c] = from[c] + shift[c];
  }
}

template <class T>
void bias_grad(const lane& on, at db, at dy, int tokens, int width, bool accumulate) {
  const T* grad = on.at<T>(dy);
  column_sums(on.at<T>(db), 0, tokens, 1, width, accumulate,
              [=](std::size_t n, int c) { return grad[n * width + c]; });
}

template decltype(linear<float>) linear<float>;
template decltype(linear<double>) linear<double>;
template decltype(linear_dx<float>) linear_dx<float>;
template decltype(linear_dx<double>) linear_dx<double>;
template decltype(linear_dw<float>) linear_dw<float>;
template decltype(linear_dw<double>) linear_dw<double>;
template decltype(bias<float>) bias<float>;
template decltype(bias<double>) bias<double>;
template decltype(bias_grad<float>) bias_grad<float>;
template decltype(bias_grad<double>) bias_grad<double>;

}  // namespace rankc::runtime::host
