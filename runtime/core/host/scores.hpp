// SPDX-License-Identifier: Apache-2.0
// The softmax of attention. Forward turns scores into probabilities, and backward computes the gradients of
// scores.
#pragma once
#include "exp.hpp"

#include <rankc/contract/attention_setting.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace rankc::runtime::host {

// The position in its sequence at which each token's document begins. Without `starts` it is 0.
struct documents {
  const std::int32_t* starts = nullptr;  // (rows, seq)
  int seq = 0;
  int start(int row, int position) const {
    return starts ? starts[static_cast<std::size_t>(row) * seq + position] : 0;
  }
};

// An attention_setting, for heads of `dim` elements.
template <class T>
struct score_form {
  attention_setting by;
  T scale, inverse_cap;
  score_form(const attention_setting& s, int dim)
      : by(s),
        scale(static_cast<T>(s.scale != 0 ? s.scale : 1 / std::sqrt(static_cast<double>(dim)))),
        inverse_cap(static_cast<T>(s.softcap != 0 ? 1 / s.softcap : 0)) {}

  // The first position that a query of a sequence sees.
  int first_key(const documents& of, int row, int position) const {
    return std::max(of.start(row, position), by.first_key(position));
  }
  // In place: softcap tanh(score / softcap), for the keys from `first` to `last`.
  void cap(T* scores, int first, int last) const {
    if (by.softcap == 0) return;
    const double cap = by.softcap;
#pragma omp simd
    for (int j = first; j <= last; ++j) {
      const double x = static_cast<double>(scores[j]) / cap, e = exponential(-2 * std::abs(x));
      scores[j] = static_cast<T>(std::copysign(cap * (1 - e) / (1 + e), x));
    }
  }
};

// In place: turns the scores of one query into probabilities, which are zero outside the keys `first` to
// `last`. Returns the log-sum-exp of the scores; -infinity without such keys.
template <class T>
T seen_softmax(T* scores, int first, int last, int columns) {
  if (first > last) {
    std::fill(scores, scores + columns, T(0));
    return -std::numeric_limits<T>::infinity();
  }
  T top = scores[first];
  double sum = 0;
#pragma omp simd reduction(max : top)
  for (int j = first; j <= last; ++j) top = scores[j] > top ? scores[j] : top;
#pragma omp simd reduction(+ : sum)
  for (int j = first; j <= last; ++j) {
    scores[j] = exponential(scores[j] - top);
    sum += static_cast<double>(scores[j]);
  }
  const T norm = static_cast<T>(1 / sum);
#pragma omp simd
  for (int j = first; j <= last; ++j) scores[j] *= norm;
  std::fill(scores, scores + first, T(0));
  std::fill(scores + last + 1, scores + columns, T(0));
  return top + static_cast<T>(std::log(sum));
}

// In place: turns capped scores into probabilities P, and dP into the gradient of q k, scale P (dP - delta)
// (1 - (score / softcap)^2). Both are zero outside the keys `first` to `last`.
template <class T>
void seen_softmax_grad(T* scores, T* dscores, T lse, T delta, const score_form<T>& by, int first, int last,
                       int columns) {
  first = std::min(first, last + 1);
#pragma omp simd
  for (int j = first; j <= last; ++j) {
    const T share = scores[j] * by.inverse_cap, slope = 1 - share * share;
    scores[j] = exponential(scores[j] - lse);
    dscores[j] = by.scale * scores[j] * (dscores[j] - delta) * slope;
  }
  for (T* each : {scores, dscores}) {
    std::fill(each, each + first, T(0));
    std::fill(each + last + 1, each + columns, T(0));
  }
}

// delta[n] = sum over dim of do o: the term that the softmax gradient subtracts.
template <class T>
void output_dots(T* delta, const T* dout, const T* o, int seq, int stride, int dim) {
  for (std::size_t n = 0; n < static_cast<std::size_t>(seq); ++n) {
    double dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int c = 0; c < dim; ++c)
      dot += static_cast<double>(dout[n * stride + c]) * static_cast<double>(o[n * stride + c]);
    delta[n] = static_cast<T>(dot);
  }
}

}  // namespace rankc::runtime::host
