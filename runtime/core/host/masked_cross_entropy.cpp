// SPDX-License-Identifier: Apache-2.0
// Cross entropy that ignores negative labels, and the number of labels by which it is divided.
#include <rankc/runtime/host/kernels.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace rankc::runtime::host {

template <class T>
void count_labels(const lane& on, at count, at targets, int tokens, bool accumulate) {
  const std::int32_t* labels = on.at<std::int32_t>(targets);
  const auto counted = std::count_if(labels, labels + tokens, [](std::int32_t label) { return label >= 0; });
  T& out = *on.at<T>(count);
  out = (accumulate ? out : T(0)) + static_cast<T>(counted);
}

template <class T>
void skip_unlabeled(const lane& on, at total, at count, bool accumulate) {
  T& out = *on.at<T>(total);
  if (!accumulate) out = 0;
  if (*on.at<T>(count) == T(0)) out -= std::numeric_limits<T>::infinity();
}

template <class T>
void masked_cross_entropy(const lane& on, at loss, at sums, at targets, at count, int tokens, double scale,
                          bool accumulate) {
  const T* s = on.at<T>(sums);
  const std::int32_t* labels = on.at<std::int32_t>(targets);
  double total = 0;
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n)
    if (labels[n] >= 0) total += std::log(static_cast<double>(s[2 * n])) - static_cast<double>(s[2 * n + 1]);
  if (total != 0) total *= scale / static_cast<double>(*on.at<T>(count));
  T& out = *on.at<T>(loss);
  out = static_cast<T>((accumulate ? static_cast<double>(out) : 0.0) + total);
}

template <class T>
void masked_cross_entropy_grad(const lane& on, at dsums, at sums, at targets, at count, int tokens,
                               double scale) {
  const T *s = on.at<T>(sums), labels_of_step = *on.at<T>(count);
  const std::int32_t* labels = on.at<std::int32_t>(targets);
  T* to = on.at<T>(dsums);
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T factor = labels[n] >= 0 ? static_cast<T>(scale / static_cast<double>(labels_of_step)) : T(0);
    to[2 * n] = factor / s[2 * n];
    to[2 * n + 1] = -factor;
  }
}

template decltype(count_labels<float>) count_labels<float>;
template decltype(count_labels<double>) count_labels<double>;
template decltype(skip_unlabeled<float>) skip_unlabeled<float>;
template decltype(skip_unlabeled<double>) skip_unlabeled<double>;
template decltype(masked_cross_entropy<float>) masked_cross_entropy<float>;
template decltype(masked_cross_entropy<double>) masked_cross_entropy<double>;
template decltype(masked_cross_entropy_grad<float>) masked_cross_entropy_grad<float>;
template decltype(masked_cross_entropy_grad<double>) masked_cross_entropy_grad<double>;

}  // namespace rankc::runtime::host
