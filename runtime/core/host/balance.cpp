// SPDX-License-Identifier: Apache-2.0
// Router statistics, summed over tokens, and their losses. Each layer has three rows with one number per
// expert: how often the expert was chosen, the sum of its scores, and a row that begins with the sum of
// log(sum(exp(logits)))^2 and the number of dropped choices. Sums are in f64.
#include <rankc/runtime/host/kernels.hpp>
#include <rankc/contract/router.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "router_rows.hpp"

namespace rankc::runtime::host {
namespace {

/// The sum of a row's sigmoids. A score is a sigmoid divided by this sum.
struct sigmoid_of_row {
  double sum = runtime::smallest_row_sum;
  template <class T>
  sigmoid_of_row(const T* x, int width) {
    for (int e = 0; e < width; ++e) sum += logistic(static_cast<double>(x[e]));
  }
  double operator()(double x) const { return logistic(x) / sum; }
};

template <class Scores, class T>
void statistics(const lane& on, at own, at scratch, at logits, at chosen, int tokens, int experts,
                int picks) {
  double* sums = on.at<double>(scratch);
  std::fill_n(sums, 3 * experts, 0.0);
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T* x = on.at<T>(logits) + n * experts;
    const std::int32_t* pick = on.at<std::int32_t>(chosen) + n * static_cast<std::size_t>(picks);
    for (int k = 0; k < picks; ++k) sums[pick[k]] += 1;
    const Scores scores(x, experts);
    for (int e = 0; e < experts; ++e) sums[experts + e] += scores(static_cast<double>(x[e]));
    const double log_sum = softmax_of_row(x, experts).log_sum();
    sums[2 * experts] += log_sum * log_sum;
  }
  for (int i = 0; i < 3 * experts; ++i) on.at<T>(own)[i] = static_cast<T>(sums[i]);
}

/// `derivative(x, score, d)` is the gradient of logit x through its score. `d` is the score's gradient minus
/// the mean of all gradients, weighted by the scores.
template <class Scores, class T>
void statistics_grad(const lane& on, at dlogits, at down, at logits, int tokens, int experts,
                     auto derivative) {
  const T* grad = on.at<T>(down);
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T* x = on.at<T>(logits) + n * experts;
    T* dx = on.at<T>(dlogits) + n * experts;
    const Scores scores(x, experts);
    const softmax_of_row softmax(x, experts);
    double mean = 0;
    for (int e = 0; e < experts; ++e)
      mean += static_cast<double>(grad[experts + e]) * scores(static_cast<double>(x[e]));
    for (int e = 0; e < experts; ++e) {
      const double logit = static_cast<double>(x[e]);
      const double of_square =
          2 * softmax.log_sum() * softmax(logit) * static_cast<double>(grad[2 * experts]);
      dx[e] = static_cast<T>(derivative(logit, scores(logit), static_cast<double>(grad[experts + e]) - mean) +
                             of_square);
    }
  }
}

}  // namespace

template <class T>
void softmax_statistics(const lane& on, at own, at scratch, at logits, at chosen, int tokens, int experts,
                        int picks) {
  statistics<softmax_of_row, T>(on, own, scratch, logits, chosen, tokens, experts, picks);
}
template <class T>
void sigmoid_statistics(const lane& on, at own, at scratch, at logits, at chosen, int tokens, int experts,
                        int picks) {
  statistics<sigmoid_of_row, T>(on, own, scratch, logits, chosen, tokens, experts, picks);
}
template <class T>
void softmax_statistics_grad(const lane& on, at dlogits, at down, at logits, int tokens, int experts) {
  statistics_grad<softmax_of_row, T>(on, dlogits, down, logits, tokens, experts,
                                     [](double, double score, double d) { return score * d; });
}
template <class T>
void sigmoid_statistics_grad(const lane& on, at dlogits, at down, at logits, int tokens, int experts) {
  statistics_grad<sigmoid_of_row, T>(
      on, dlogits, down, logits, tokens, experts,
      [](double x, double score, double d) { return score * (1 - logistic(x)) * d; });
}

template <class T>
void dropped_statistics(const lane& on, at own, at places, int tokens, int picks, int experts) {
  const std::int32_t* place = on.at<std::int32_t>(places);
  std::fill_n(on.at<T>(own), 3 * experts, T(0));
  on.at<T>(own)[2 * experts + 1] =
      static_cast<T>(std::count(place, place + static_cast<std::size_t>(tokens) * picks, -1));
}

template <class T>
void push(const lane& on, at y, at s, at own, int width, int own_width) {
  std::copy_n(on.at<T>(s) + own_width, width - own_width, on.at<T>(y));
  std::copy_n(on.at<T>(own), own_width, on.at<T>(y) + width - own_width);
}
template <class T>
void push_grad(const lane& on, at ds, at down, at dy, int width, int own_width) {
  std::fill_n(on.at<T>(ds), own_width, T(0));
  std::copy_n(on.at<T>(dy), width - own_width, on.at<T>(ds) + own_width);
  std::copy_n(on.at<T>(dy) + width - own_width, own_width, on.at<T>(down));
}

namespace {

/// The number of times that an expert was chosen, from `whole`: in a layer, or in all layers.
template <class T>
double choices_of(const T* whole, int layer, int expert, int experts) {
  return static_cast<double>(whole[3 * layer * experts + expert]);
}
template <class T>
double choices_of_all(const T* whole, int layers, int expert, int experts) {
  double sum = 0;
  for (int l = 0; l < layers; ++l) sum += choices_of(whole, l, expert, experts);
  return sum;
}
template <class T>
double choices_of_layer(const T* whole, int layer, int experts) {
  double sum = 0;
  for (int e = 0; e < experts; ++e) sum += choices_of(whole, layer, e, experts);
  return sum;
}

/// The coefficients of a loss that is linear in `s`: of an expert's score sum in a layer, and of a layer's
/// sum of squares.
struct factors {
  std::function<double(int layer, int expert)> of_scores = [](int, int) { return 0.0; };
  std::function<double(int layer)> of_squares = [](int) { return 0.0; };
};
template <class T>
void write_factors(T* ds, int kinds, int experts, const factors& f) {
  std::fill_n(ds, kinds * experts, T(0));
  for (int l = 0; l < kinds / 3; ++l) {
    for (int e = 0; e < experts; ++e) ds[(3 * l + 1) * experts + e] = static_cast<T>(f.of_scores(l, e));
    ds[(3 * l + 2) * experts] = static_cast<T>(f.of_squares(l));
  }
}
template <class T>
void add_loss(T* loss, const T* s, int kinds, int experts, const factors& f, bool accumulate) {
  double sum = 0;
  for (int l = 0; l < kinds / 3; ++l) {
    for (int e = 0; e < experts; ++e)
      sum += f.of_scores(l, e) * static_cast<double>(s[(3 * l + 1) * experts + e]);
    sum += f.of_squares(l) * static_cast<double>(s[(3 * l + 2) * experts]);
  }
  *loss = static_cast<T>(sum + (accumulate ? static_cast<double>(*loss) : 0));
}

template <class T>
factors of_balance(const T* whole, int kinds, int experts, double scale) {
  return {.of_scores = [=](int, int e) { return scale * choices_of_all(whole, kinds / 3, e, experts); }};
}
template <class T>
factors of_layer_balance(const T* whole, int, int experts, double scale) {
  return {.of_scores = [=](int l, int e) { return scale * choices_of(whole, l, e, experts); }};
}
template <class T>
factors of_z(const T* whole, int, int experts, double scale) {
  return {.of_squares = [=](int l) { return scale / choices_of_layer(whole, l, experts); }};
}
/// Without dropped choices the coefficient is 0, also if the scale is infinite.
template <class T>
factors of_overflow(const T* whole, int, int experts, double log_scale) {
  return {.of_squares = [=](int l) {
    const auto dropped = static_cast<double>(whole[(3 * l + 2) * experts + 1]);
    return dropped == 0 ? 0 : dropped * std::exp(log_scale);
  }};
}

}  // namespace

template <class T>
void balance_loss(const lane& on, at loss, at whole, at s, int kinds, int experts, double scale,
                  bool accumulate) {
  add_loss(on.at<T>(loss), on.at<T>(s), kinds, experts, of_balance(on.at<T>(whole), kinds, experts, scale),
           accumulate);
}
template <class T>
void balance_loss_grad(const lane& on, at ds, at whole, int kinds, int experts, double scale) {
  write_factors(on.at<T>(ds), kinds, experts, of_balance(on.at<T>(whole), kinds, experts, scale));
}
template <class T>
void layer_balance_loss(const lane& on, at loss, at whole, at s, int kinds, int experts, double scale,
                        bool accumulate) {
  add_loss(on.at<T>(loss), on.at<T>(s), kinds, experts,
           of_layer_balance(on.at<T>(whole), kinds, experts, scale), accumulate);
}
template <class T>
void layer_balance_loss_grad(const lane& on, at ds, at whole, int kinds, int experts, double scale) {
  write_factors(on.at<T>(ds), kinds, experts, of_layer_balance(on.at<T>(whole), kinds, experts, scale));
}
template <class T>
void z_loss(const lane& on, at loss, at whole, at s, int kinds, int experts, double scale, bool accumulate) {
  add_loss(on.at<T>(loss), on.at<T>(s), kinds, experts, of_z(on.at<T>(whole), kinds, experts, scale),
           accumulate);
}
template <class T>
void z_loss_grad(const lane& on, at ds, at whole, int kinds, int experts, double scale) {
  write_factors(on.at<T>(ds), kinds, experts, of_z(on.at<T>(whole), kinds, experts, scale));
}
template <class T>
void overflow_loss(const lane& on, at loss, at whole, at s, int kinds, int experts, double log_scale,
                   bool accumulate) {
  add_loss(on.at<T>(loss), on.at<T>(s), kinds, experts,
           of_overflow(on.at<T>(whole), kinds, experts, log_scale), accumulate);
}
template <class T>
void overflow_loss_grad(const lane& on, at ds, at whole, int kinds, int experts, double log_scale) {
  write_factors(on.at<T>(ds), kinds, experts, of_overflow(on.at<T>(whole), kinds, experts, log_scale));
}

#define RANKC_FOR(kernel)                         \
  template decltype(kernel<float>) kernel<float>; \
  template decltype(kernel<double>) kernel<double>;
RANKC_FOR(softmax_statistics)
RANKC_FOR(softmax_statistics_grad)
RANKC_FOR(sigmoid_statistics)
RANKC_FOR(sigmoid_statistics_grad)
RANKC_FOR(dropped_statistics)
RANKC_FOR(push)
RANKC_FOR(push_grad)
RANKC_FOR(balance_loss)
RANKC_FOR(balance_loss_grad)
RANKC_FOR(layer_balance_loss)
RANKC_FOR(layer_balance_loss_grad)
RANKC_FOR(z_loss)
RANKC_FOR(z_loss_grad)
RANKC_FOR(overflow_loss)
RANKC_FOR(overflow_loss_grad)
#undef RANKC_FOR

}  // namespace rankc::runtime::host
