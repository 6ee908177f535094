// SPDX-License-Identifier: Apache-2.0
// Cross entropy that ignores negative labels, with or without a weight for each label, and the number by
// which it is divided: that of the labels, or the sum of their weights.
#include <rankc/runtime/host/kernels.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace rankc::runtime::host {

namespace {

/// The weight of a label: 0 if it is ignored, and 1 if labels have no weights.
template <class T>
struct label_weights {
  const std::int32_t* labels;
  const T* weights = nullptr;

  double operator()(std::size_t n) const {
    if (labels[n] < 0) return 0;
    return weights == nullptr ? 1 : static_cast<double>(weights[n]);
  }
};

template <class T>
void sum_loss(const lane& on, at loss, at sums, const label_weights<T>& weight, at count, int tokens,
              double scale, bool accumulate) {
  const T* s = on.at<T>(sums);
  double total = 0;
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n)
    if (const double w = weight(n); w > 0)
      total += w * (std::log(static_cast<double>(s[2 * n])) - static_cast<double>(s[2 * n + 1]));
  if (total != 0) total *= scale / static_cast<double>(*on.at<T>(count));
  T& out = *on.at<T>(loss);
  out = static_cast<T>((accumulate ? static_cast<double>(out) : 0.0) + total);
}

template <class T>
void gradient_of_sums(const lane& on, at dsums, at sums, const label_weights<T>& weight, at count, int tokens,
                      double scale) {
  const T *s = on.at<T>(sums), of_step = *on.at<T>(count);
  T* to = on.at<T>(dsums);
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const double w = weight(n);
    const T factor = w > 0 ? static_cast<T>(w * (scale / static_cast<double>(of_step))) : T(0);
    to[2 * n] = factor / s[2 * n];
    to[2 * n + 1] = -factor;
  }
}

}  // namespace

template <class T>
void count_labels(const lane& on, at count, at targets, int tokens, bool accumulate) {
  const std::int32_t* labels = on.at<std::int32_t>(targets);
  const auto counted = std::count_if(labels, labels + tokens, [](std::int32_t label) { return label >= 0; });
  T& out = *on.at<T>(count);
  out = (accumulate ? out : T(0)) + static_cast<T>(counted);
}

template <class T>
void sum_weights(const lane& on, at count, at targets, at weights, int tokens, bool accumulate) {
  const label_weights<T> weight{on.at<std::int32_t>(targets), on.at<T>(weights)};
  double sum = 0;
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) sum += weight(n);
  T& out = *on.at<T>(count);
  out = (accumulate ? out : T(0)) + static_cast<T>(sum);
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
  sum_loss<T>(on, loss, sums, {on.at<std::int32_t>(targets)}, count, tokens, scale, accumulate);
}

template <class T>
void masked_cross_entropy_grad(const lane& on, at dsums, at sums, at targets, at count, int tokens,
                               double scale) {
  gradient_of_sums<T>(on, dsums, sums, {on.at<std::int32_t>(targets)}, count, tokens, scale);
}

template <class T>
void weighted_cross_entropy(const lane& on, at loss, at sums, at targets, at weights, at count, int tokens,
                            double scale, bool accumulate) {
  sum_loss<T>(on, loss, sums, {on.at<std::int32_t>(targets), on.at<T>(weights)}, count, tokens, scale,
              accumulate);
}

template <class T>
void weighted_cross_entropy_grad(const lane& on, at dsums, at sums, at targets, at weights, at count,
                                 int tokens, double scale) {
  gradient_of_sums<T>(on, dsums, sums, {on.at<std::int32_t>(targets), on.at<T>(weights)}, count, tokens,
                      scale);
}

template decltype(count_labels<float>) count_labels<float>;
template decltype(count_labels<double>) count_labels<double>;
template decltype(sum_weights<float>) sum_weights<float>;
template decltype(sum_weights<double>) sum_weights<double>;
template decltype(skip_unlabeled<float>) skip_unlabeled<float>;
template decltype(skip_unlabeled<double>) skip_unlabeled<double>;
template decltype(masked_cross_entropy<float>) masked_cross_entropy<float>;
template decltype(masked_cross_entropy<double>) masked_cross_entropy<double>;
template decltype(masked_cross_entropy_grad<float>) masked_cross_entropy_grad<float>;
template decltype(masked_cross_entropy_grad<double>) masked_cross_entropy_grad<double>;
template decltype(weighted_cross_entropy<float>) weighted_cross_entropy<float>;
template decltype(weighted_cross_entropy<double>) weighted_cross_entropy<double>;
template decltype(weighted_cross_entropy_grad<float>) weighted_cross_entropy_grad<float>;
template decltype(weighted_cross_entropy_grad<double>) weighted_cross_entropy_grad<double>;

}  // namespace rankc::runtime::host
