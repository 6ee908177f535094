// SPDX-License-Identifier: Apache-2.0
// Attention sinks: scores that enter the sums of softmaxes and have no value.
#include <rankc/runtime/host/kernels.hpp>

#include <algorithm>
#include <cmath>

namespace rankc::runtime::host {

namespace {

/// Visits the queries of all heads. `statistic` is the index of a query in the log-sum-exps, and `score` its
/// index in the scores.
void each_query(int rows, int tokens, int heads, auto visit) {
  const std::size_t count = static_cast<std::size_t>(tokens / rows), all = static_cast<std::size_t>(heads);
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row)
    for (std::size_t h = 0; h < all; ++h)
      for (std::size_t n = 0; n < count; ++n) visit((row * all + h) * count + n, (row * count + n) * all + h);
}

}  // namespace

template <class T>
void sink_scores(const lane& on, at scores, at, at sinks, int tokens, int heads, int) {
  for (int t = 0; t < tokens; ++t)
    std::copy_n(on.at<T>(sinks), heads, on.at<T>(scores) + static_cast<std::size_t>(t) * heads);
}

template <class T>
void add_sinks(const lane& on, at o, at lse, at o_before, at lse_before, at scores, int rows, int tokens,
               int heads, int dim) {
  each_query(rows, tokens, heads, [&](std::size_t statistic, std::size_t score) {
    const T sum = on.at<T>(lse_before)[statistic], sink = on.at<T>(scores)[score], top = std::max(sum, sink);
    const T total = top + std::log(std::exp(sum - top) + std::exp(sink - top)), share = std::exp(sum - total);
    on.at<T>(lse)[statistic] = total;
    const T* const before = on.at<T>(o_before) + score * dim;
    std::transform(before, before + dim, on.at<T>(o) + score * dim, [&](T x) { return share * x; });
  });
}

template <class T>
void add_sinks_grad(const lane& on, at dscores, at dout, at o, at lse, at scores, int rows, int tokens,
                    int heads, int dim) {
  each_query(rows, tokens, heads, [&](std::size_t statistic, std::size_t score) {
    const T *const d = on.at<T>(dout) + score * dim, *const made = on.at<T>(o) + score * dim;
    T sum = 0;
    for (int i = 0; i < dim; ++i) sum += d[i] * made[i];
    on.at<T>(dscores)[score] = -std::exp(on.at<T>(scores)[score] - on.at<T>(lse)[statistic]) * sum;
  });
}

template decltype(sink_scores<float>) sink_scores<float>;
template decltype(sink_scores<double>) sink_scores<double>;
template decltype(add_sinks<float>) add_sinks<float>;
template decltype(add_sinks<double>) add_sinks<double>;
template decltype(add_sinks_grad<float>) add_sinks_grad<float>;
template decltype(add_sinks_grad<double>) add_sinks_grad<double>;

}  // namespace rankc::runtime::host
