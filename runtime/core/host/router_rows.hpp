// SPDX-License-Identifier: Apache-2.0
// Scores of a row of logits, and the largest of them.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace rankc::runtime::host {

/// The largest logit of a row, and the sum of exp(x - top) over the row.
struct softmax_of_row {
  double top = 0, sum = 0;
  template <class T>
  softmax_of_row(const T* x, int width) : top(static_cast<double>(*std::max_element(x, x + width))) {
    for (int e = 0; e < width; ++e) sum += std::exp(static_cast<double>(x[e]) - top);
  }
  double operator()(double x) const { return std::exp(x - top) / sum; }
  /// log(sum(exp(x))) of the row.
  double log_sum() const { return top + std::log(sum); }
};

inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// The indices of the largest elements of a row in falling order, with ties to the lower index. Scores rise
/// with logits, so logits give the same order.
template <class T>
void take_largest(std::int32_t* chosen, int picks, const T* x, int width) {
  for (int k = 0; k < picks; ++k) {
    int best = -1;
    for (int e = 0; e < width; ++e)
      if (std::find(chosen, chosen + k, e) == chosen + k && (best < 0 || x[e] > x[best])) best = e;
    chosen[k] = best;
  }
}

}  // namespace rankc::runtime::host
