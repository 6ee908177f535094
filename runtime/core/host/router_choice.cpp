// SPDX-License-Identifier: Apache-2.0
// Routers that choose by other scores than the logits: by groups of experts, or by scores with a bias.
#include <rankc/runtime/host/kernels.hpp>

#include <limits>
#include <numeric>
#include <vector>

#include "router_rows.hpp"

namespace rankc::runtime::host {

namespace {

/// The scores of a row, plus the bias if there is one.
template <class T>
std::vector<double> with_bias(const T* scores, int experts, const T* bias) {
  std::vector<double> all(scores, scores + experts);
  for (int e = 0; bias && e < experts; ++e) all[static_cast<std::size_t>(e)] += static_cast<double>(bias[e]);
  return all;
}

/// The sum of the `best` largest scores of a group.
double score_of_group(const double* scores, int each, int best) {
  std::vector<std::int32_t> largest(static_cast<std::size_t>(best));
  take_largest(largest.data(), best, scores, each);
  return std::accumulate(largest.begin(), largest.end(), 0.0,
                         [=](double sum, std::int32_t e) { return sum + scores[e]; });
}

template <class T>
void keep(const lane& on, at y, at kept, at scores, const T* bias, int tokens, int groups, int each,
          int taken, double best) {
  const int experts = groups * each;
  std::vector<double> of_groups(static_cast<std::size_t>(groups));
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T* x = on.at<T>(scores) + n * experts;
    const std::vector<double> biased = with_bias(x, experts, bias);
    for (int g = 0; g < groups; ++g)
      of_groups[static_cast<std::size_t>(g)] =
          score_of_group(biased.data() + g * each, each, static_cast<int>(best));
    std::int32_t* k = on.at<std::int32_t>(kept) + n * taken;
    take_largest(k, taken, of_groups.data(), groups);
    for (int e = 0; e < experts; ++e)
      on.at<T>(y)[n * experts + e] =
          std::find(k, k + taken, e / each) == k + taken ? -std::numeric_limits<T>::infinity() : x[e];
  }
}

/// `weight_of(row)` returns a function from a logit of that row to its weight.
template <class T>
void top_by(const lane& on, at weights, at chosen, at logits, at scores, const T* bias, int tokens,
            int experts, int picks, auto weight_of) {
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T* x = on.at<T>(logits) + n * experts;
    std::int32_t* c = on.at<std::int32_t>(chosen) + n * picks;
    take_largest(c, picks, with_bias(on.at<T>(scores) + n * experts, experts, bias).data(), experts);
    const auto weight = weight_of(x);
    for (int k = 0; k < picks; ++k)
      on.at<T>(weights)[n * picks + k] = static_cast<T>(weight(static_cast<double>(x[c[k]])));
  }
}
template <class T>
void softmax_by(const lane& on, at weights, at chosen, at logits, at scores, const T* bias, int tokens,
                int experts, int picks) {
  top_by(on, weights, chosen, logits, scores, bias, tokens, experts, picks,
         [=](const T* x) { return softmax_of_row(x, experts); });
}
template <class T>
void sigmoid_by(const lane& on, at weights, at chosen, at logits, at scores, const T* bias, int tokens,
                int experts, int picks) {
  top_by(on, weights, chosen, logits, scores, bias, tokens, experts, picks,
         [](const T*) { return logistic; });
}

}  // namespace

template <class T>
void softmax_scores(const lane& on, at scores, at logits, int tokens, int experts) {
  for (std::size_t n = 0; n < static_cast<std::size_t>(tokens); ++n) {
    const T* x = on.at<T>(logits) + n * experts;
    const softmax_of_row softmax(x, experts);
    for (int e = 0; e < experts; ++e)
      on.at<T>(scores)[n * experts + e] = static_cast<T>(softmax(static_cast<double>(x[e])));
  }
}
template <class T>
void sigmoid_scores(const lane& on, at scores, at logits, int tokens, int experts) {
  const std::size_t all = static_cast<std::size_t>(tokens) * experts;
  for (std::size_t i = 0; i < all; ++i)
    on.at<T>(scores)[i] = static_cast<T>(logistic(static_cast<double>(on.at<T>(logits)[i])));
}

template <class T>
void keep_groups(const lane& on, at y, at kept, at scores, int tokens, int groups, int each, int taken,
                 double best) {
  keep<T>(on, y, kept, scores, nullptr, tokens, groups, each, taken, best);
}
template <class T>
void biased_keep_groups(const lane& on, at y, at kept, at scores, at bias, int tokens, int groups, int each,
                        int taken, double best) {
  keep<T>(on, y, kept, scores, on.at<T>(bias), tokens, groups, each, taken, best);
}

template <class T>
void softmax_top_by(const lane& on, at weights, at chosen, at logits, at scores, int tokens, int experts,
                    int picks) {
  softmax_by<T>(on, weights, chosen, logits, scores, nullptr, tokens, experts, picks);
}
template <class T>
void sigmoid_top_by(const lane& on, at weights, at chosen, at logits, at scores, int tokens, int experts,
                    int picks) {
  sigmoid_by<T>(on, weights, chosen, logits, scores, nullptr, tokens, experts, picks);
}
template <class T>
void biased_softmax_top_by(const lane& on, at weights, at chosen, at logits, at scores, at bias, int tokens,
                           int experts, int picks) {
  softmax_by<T>(on, weights, chosen, logits, scores, on.at<T>(bias), tokens, experts, picks);
}
template <class T>
void biased_sigmoid_top_by(const lane& on, at weights, at chosen, at logits, at scores, at bias, int tokens,
                           int experts, int picks) {
  sigmoid_by<T>(on, weights, chosen, logits, scores, on.at<T>(bias), tokens, experts, picks);
}

template <class T>
void count_choices(const lane& on, at dbias, at chosen, int tokens, int picks, int experts, bool accumulate) {
  T* counts = on.at<T>(dbias);
  const std::int32_t* c = on.at<std::int32_t>(chosen);
  if (!accumulate) std::fill_n(counts, experts, T(0));
  for (std::size_t i = 0; i < static_cast<std::size_t>(tokens) * picks; ++i) counts[c[i]] += 1;
}

#define RANKC_FOR(kernel)                         \
  template decltype(kernel<float>) kernel<float>; \
  template decltype(kernel<double>) kernel<double>;
RANKC_FOR(softmax_scores)
RANKC_FOR(sigmoid_scores)
RANKC_FOR(keep_groups)
RANKC_FOR(biased_keep_groups)
RANKC_FOR(softmax_top_by)
RANKC_FOR(sigmoid_top_by)
RANKC_FOR(biased_softmax_top_by)
RANKC_FOR(biased_sigmoid_top_by)
RANKC_FOR(count_choices)
#undef RANKC_FOR

}  // namespace rankc::runtime::host
