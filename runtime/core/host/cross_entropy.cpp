// SPDX-License-Identifier: Apache-2.0
// Cross entropy over a vocabulary that may be sharded: each rank's part of the softmax, and the loss.
#include "exp.hpp"

#include <rankc/runtime/host/kernels.hpp>

#include <cmath>

namespace rankc::runtime::host {

template <class T>
void row_max(const lane& on, at top, at logits, int tokens, int vocab) {
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T* row = on.at<T>(logits) + n * vocab;
    T largest = row[0];
#pragma omp simd reduction(max : largest)
    for (int c = 1; c < vocab; ++c) largest = row[c] > largest ? row[c] : largest;
    on.at<T>(top)[n] = largest;
  }
}

template <class T>
void exp_sums(const lane& on, at sums, at logits, at top, at targets, int tokens, int vocab, int first) {
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T* row = on.at<T>(logits) + n * vocab;
    const T largest = on.at<T>(top)[n];
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int c = 0; c < vocab; ++c) sum += static_cast<double>(exponential(row[c] - largest));
    const std::int64_t target = static_cast<std::int64_t>(on.at<std::int32_t>(targets)[n]) - first;
    on.at<T>(sums)[2 * n] = static_cast<T>(sum);
    on.at<T>(sums)[2 * n + 1] = target >= 0 && target < vocab ? row[target] - largest : T(0);
  }
}

template <class T>
void exp_sums_grad(const lane& on, at dlogits, at dsums, at logits, at top, at targets, int tokens, int vocab,
                   int first) {
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T* row = on.at<T>(logits) + n * vocab;
    T* to = on.at<T>(dlogits) + n * vocab;
    const T largest = on.at<T>(top)[n], d_exp = on.at<T>(dsums)[2 * n], d_target = on.at<T>(dsums)[2 * n + 1];
#pragma omp simd
    for (int c = 0; c < vocab; ++c) to[c] = d_exp * exponential(row[c] - largest);
    const std::int64_t target = static_cast<std::int64_t>(on.at<std::int32_t>(targets)[n]) - first;
    if (target >= 0 && target < vocab) to[target] += d_target;
  }
}

template <class T>
void cross_entropy(const lane& on, at loss, at sums, int tokens, double scale, bool accumulate) {
  const T* s = on.at<T>(sums);
  double total = 0;
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n)
    total += std::log(static_cast<double>(s[2 * n])) - static_cast<double>(s[2 * n + 1]);
  T& out = *on.at<T>(loss);
  out = static_cast<T>((accumulate ? static_cast<double>(out) : 0.0) + scale * total);
}

template <class T>
void cross_entropy_grad(const lane& on, at dsums, at sums, int tokens, double scale) {
  const T* s = on.at<T>(sums);
  T* to = on.at<T>(dsums);
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    to[2 * n] = static_cast<T>(scale) / s[2 * n];
    to[2 * n + 1] = static_cast<T>(-scale);
  }
}

template decltype(row_max<float>) row_max<float>;
template decltype(row_max<double>) row_max<double>;
template decltype(exp_sums<float>) exp_sums<float>;
template decltype(exp_sums<double>) exp_sums<double>;
template decltype(exp_sums_grad<float>) exp_sums_grad<float>;
template decltype(exp_sums_grad<double>) exp_sums_grad<double>;
template decltype(cross_entropy<float>) cross_entropy<float>;
template decltype(cross_entropy<double>) cross_entropy<double>;
template decltype(cross_entropy_grad<float>) cross_entropy_grad<float>;
template decltype(cross_entropy_grad<double>) cross_entropy_grad<double>;

}  // namespace rankc::runtime::host
