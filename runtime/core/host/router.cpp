// SPDX-License-Identifier: Apache-2.0
// Routers: the largest scores of each row, and weights that add up to a total. Sums over a row are in f64.
#include <rankc/runtime/host/kernels.hpp>

#include "router_rows.hpp"

namespace rankc::runtime::host {

template <class T>
void softmax_top(const lane& on, at weights, at chosen, at logits, int tokens, int experts, int picks) {
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T* x = on.at<T>(logits) + n * experts;
    std::int32_t* c = on.at<std::int32_t>(chosen) + n * picks;
    take_largest(c, picks, x, experts);
    const softmax_of_row softmax(x, experts);
    for (int k = 0; k < picks; ++k)
      on.at<T>(weights)[n * picks + k] = static_cast<T>(softmax(static_cast<double>(x[c[k]])));
  }
}

// p is the softmax of the row: dlogits = p (dp - sum(dp p)), where dp is 0 for experts that were not chosen.
template <class T>
void softmax_top_grad(const lane& on, at dlogits, at dweights, at logits, at chosen, int tokens, int experts,
                      int picks) {
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T *x = on.at<T>(logits) + n * experts, *grad = on.at<T>(dweights) + n * picks;
    const std::int32_t* c = on.at<std::int32_t>(chosen) + n * picks;
    T* dx = on.at<T>(dlogits) + n * experts;
    const softmax_of_row softmax(x, experts);
    double dot = 0;
    for (int k = 0; k < picks; ++k)
      dot += static_cast<double>(grad[k]) * softmax(static_cast<double>(x[c[k]]));
    for (int e = 0; e < experts; ++e) {
      const std::int32_t* taken = std::find(c, c + picks, e);
      const double dp = taken == c + picks ? 0 : static_cast<double>(grad[taken - c]);
      dx[e] = static_cast<T>(softmax(static_cast<double>(x[e])) * (dp - dot));
    }
  }
}

template <class T>
void sigmoid_top(const lane& on, at weights, at chosen, at logits, int tokens, int experts, int picks) {
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T* x = on.at<T>(logits) + n * experts;
    std::int32_t* c = on.at<std::int32_t>(chosen) + n * picks;
    take_largest(c, picks, x, experts);
    for (int k = 0; k < picks; ++k)
      on.at<T>(weights)[n * picks + k] = static_cast<T>(logistic(static_cast<double>(x[c[k]])));
  }
}

template <class T>
void sigmoid_top_grad(const lane& on, at dlogits, at dweights, at logits, at chosen, int tokens, int experts,
                      int picks) {
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T *x = on.at<T>(logits) + n * experts, *grad = on.at<T>(dweights) + n * picks;
    const std::int32_t* c = on.at<std::int32_t>(chosen) + n * picks;
    T* dx = on.at<T>(dlogits) + n * experts;
    std::fill_n(dx, experts, T(0));
    for (int k = 0; k < picks; ++k) {
      const double s = logistic(static_cast<double>(x[c[k]]));
      dx[c[k]] = static_cast<T>(static_cast<double>(grad[k]) * s * (1 - s));
    }
  }
}

template <class T>
void normalize(const lane& on, at y, at x, int tokens, int width, double total) {
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T* from = on.at<T>(x) + n * width;
    double sum = runtime::smallest_row_sum;
    for (int k = 0; k < width; ++k) sum += static_cast<double>(from[k]);
    for (int k = 0; k < width; ++k)
      on.at<T>(y)[n * width + k] = static_cast<T>(total * static_cast<double>(from[k]) / sum);
  }
}

// s is the sum of the row: dx = total / s (dy - sum(dy x) / s).
template <class T>
void normalize_grad(const lane& on, at dx, at dy, at x, int tokens, int width, double total) {
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T *from = on.at<T>(x) + n * width, *grad = on.at<T>(dy) + n * width;
    double sum = runtime::smallest_row_sum, dot = 0;
    for (int k = 0; k < width; ++k) {
      sum += static_cast<double>(from[k]);
      dot += static_cast<double>(from[k]) * static_cast<double>(grad[k]);
    }
    for (int k = 0; k < width; ++k)
      on.at<T>(dx)[n * width + k] = static_cast<T>(total / sum * (static_cast<double>(grad[k]) - dot / sum));
  }
}

template decltype(softmax_top<float>) softmax_top<float>;
template decltype(softmax_top<double>) softmax_top<double>;
template decltype(softmax_top_grad<float>) softmax_top_grad<float>;
template decltype(softmax_top_grad<double>) softmax_top_grad<double>;
template decltype(sigmoid_top<float>) sigmoid_top<float>;
template decltype(sigmoid_top<double>) sigmoid_top<double>;
template decltype(sigmoid_top_grad<float>) sigmoid_top_grad<float>;
template decltype(sigmoid_top_grad<double>) sigmoid_top_grad<double>;
template decltype(normalize<float>) normalize<float>;
template decltype(normalize<double>) normalize<double>;
template decltype(normalize_grad<float>) normalize_grad<float>;
template decltype(normalize_grad<double>) normalize_grad<double>;

}  // namespace rankc::runtime::host
