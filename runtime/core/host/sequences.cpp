// SPDX-License-Identifier: Apache-2.0
// Means of sequences over their tokens, and the squared error.
#include <rankc/runtime/host/kernels.hpp>

namespace rankc::runtime::host {

template <class T>
void sequence_mean(const lane& on, at y, at x, int tokens, int width, int rows, int seq) {
  const T* from = on.at<T>(x);
  for (int row = 0; row < rows; ++row)
    for (int c = 0; c < width; ++c) {
      double sum = 0;
      for (int n = 0; n < tokens / rows; ++n)
        sum += static_cast<double>(from[(static_cast<std::size_t>(row) * (tokens / rows) + n) * width + c]);
      on.at<T>(y)[static_cast<std::size_t>(row) * width + c] = static_cast<T>(sum / seq);
    }
}

template <class T>
void sequence_mean_grad(const lane& on, at dx, at dy, at, int tokens, int width, int rows, int seq) {
  T* to = on.at<T>(dx);
  for (int n = 0; n < tokens; ++n) {
    const T* from = on.at<T>(dy) + static_cast<std::size_t>(n / (tokens / rows)) * width;
    for (int c = 0; c < width; ++c) *to++ = from[c] / static_cast<T>(seq);
  }
}

template <class T>
void squared_error(const lane& on, at loss, at x, at targets, std::size_t count, double scale,
                   bool accumulate) {
  double total = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double apart = static_cast<double>(on.at<T>(x)[i]) - static_cast<double>(on.at<T>(targets)[i]);
    total += apart * apart;
  }
  T& out = *on.at<T>(loss);
  out = static_cast<T>((accumulate ? static_cast<double>(out) : 0.0) + scale * total);
}

template <class T>
void squared_error_grad(const lane& on, at dx, at x, at targets, std::size_t count, double scale) {
  for (std::size_t i = 0; i < count; ++i)
    on.at<T>(dx)[i] = static_cast<T>(2 * scale) * (on.at<T>(x)[i] - on.at<T>(targets)[i]);
}

template decltype(sequence_mean<float>) sequence_mean<float>;
template decltype(sequence_mean<double>) sequence_mean<double>;
template decltype(sequence_mean_grad<float>) sequence_mean_grad<float>;
template decltype(sequence_mean_grad<double>) sequence_mean_grad<double>;
template decltype(squared_error<float>) squared_error<float>;
template decltype(squared_error<double>) squared_error<double>;
template decltype(squared_error_grad<float>) squared_error_grad<float>;
template decltype(squared_error_grad<double>) squared_error_grad<double>;

}  // namespace rankc::runtime::host
