// SPDX-License-Identifier: Apache-2.0
// What attention makes of the scores of its queries.
#pragma once
#include "exp.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace rankc::host {

inline constexpr int query_block = 128;

// In place: scores (columns >= query) of one query become probabilities, zero after its own key.
// Returns the log-sum-exp of the scores.
template <class T>
T causal_softmax(T* scores, int query, int columns) {
  T top = scores[0];
  double sum = 0;
#pragma omp simd reduction(max : top)
  for (int j = 0; j <= query; ++j) top = scores[j] > top ? scores[j] : top;
#pragma omp simd reduction(+ : sum)
  for (int j = 0; j <= query; ++j) {
    scores[j] = exponential(scores[j] - top);
    sum += static_cast<double>(scores[j]);
  }
  const T norm = static_cast<T>(1 / sum);
#pragma omp simd
  for (int j = 0; j <= query; ++j) scores[j] *= norm;
  std::fill(scores + query + 1, scores + columns, T(0));
  return top + static_cast<T>(std::log(sum));
}

// In place: scores become probabilities P, and dP becomes dS = scale P (dP - delta), zero after the query's
// key.
template <class T>
void causal_softmax_grad(T* scores, T* dscores, T lse, T delta, T scale, int query, int columns) {
#pragma omp simd
  for (int j = 0; j <= query; ++j) {
    scores[j] = exponential(scores[j] - lse);
    dscores[j] = scale * scores[j] * (dscores[j] - delta);
  }
  std::fill(scores + query + 1, scores + columns, T(0));
  std::fill(dscores + query + 1, dscores + columns, T(0));
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

}  // namespace rankc::host
