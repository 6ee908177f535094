// SPDX-License-Identifier: Apache-2.0
// The softmax of attention: scores become probabilities, and in backward gradients of scores.
#pragma once
#include "exp.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace rankc::runtime::host {

// Where each token's document begins in its sequence; without `starts` with the sequence.
struct documents {
  const std::int32_t* starts = nullptr;  // (rows, seq)
  int seq = 0;
  int start(int row, int position) const {
    return starts ? starts[static_cast<std::size_t>(row) * seq + position] : 0;
  }
};

// In place: scores of one query become probabilities, zero but for the keys from `first` to `last`.
// Returns the log-sum-exp of the scores; -infinity where there are no such keys.
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

// In place: scores become probabilities P, and dP becomes dS = scale P (dP - delta), zero but for the keys
// from `first` to `last`.
template <class T>
void seen_softmax_grad(T* scores, T* dscores, T lse, T delta, T scale, int first, int last, int columns) {
  first = std::min(first, last + 1);
#pragma omp simd
  for (int j = first; j <= last; ++j) {
    scores[j] = exponential(scores[j] - lse);
    dscores[j] = scale * scores[j] * (dscores[j] - delta);
  }
  for (T* each : {scores, dscores}) {
    std::fill(each, each + first, T(0));
    std::fill(each + last + 1, each + columns, T(0));
  }
}

// delta[n] = sum over dim of do o: what the softmax gradient subtracts.
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
