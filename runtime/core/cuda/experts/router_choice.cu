// SPDX-License-Identifier: Apache-2.0
// Routers that choose by other scores than the logits, with one warp for each token: by groups of experts, or
// by scores with a bias.
#include <rankc/runtime/cuda/kernels.hpp>

#include "router_rows.cuh"

namespace rankc::runtime::cuda {
namespace {

/// A row's scores, and their bias or null.
template <class T>
struct biased_scores {
  const float* scores;
  const T* bias;
  __device__ float operator()(int e) const { return bias ? scores[e] + to_float(bias[e]) : scores[e]; }
};
/// The sum of the `best` largest scores of a group, computed by one thread.
template <class T>
struct scores_of_groups {
  biased_scores<T> of;
  int each, best;
  __device__ float operator()(int group) const {
    float sum = 0.0f;
    pick last{INFINITY, -1};
    for (int k = 0; k < best; ++k) {
      pick largest{-INFINITY, each};
      for (int e = 0; e < each; ++e)
        if (const pick p{fmaxf(of(group * each + e), -INFINITY), e};
            last.comes_before(p) && p.comes_before(largest))
          largest = p;
      sum += (last = largest).logit;
    }
    return sum;
  }
};

/// Computes the scores of all experts.
/// Shapes: scores f32, logits (tokens, experts).
template <bool Softmax, class T>
__global__ void __launch_bounds__(router_block)
    score(float* scores, const T* logits, int tokens, int experts) {
  const std::size_t n = token_of_warp();
  if (n >= tokens) return;
  const T* x = logits + n * experts;
  float2 row{};
  if constexpr (Softmax) row = softmax_of_row(x, experts);
  for (int e = lane_of_warp(); e < experts; e += warp_size)
    scores[n * experts + e] = Softmax ? expf(to_float(x[e]) - row.x) / row.y : logistic(to_float(x[e]));
}

/// Keeps the `taken` groups with the largest scores.
/// Shapes: y, scores f32 (tokens, groups, each), kept (tokens, taken), bias (groups, each) or null.
template <class T>
__global__ void __launch_bounds__(router_block)
    keep(float* y, std::int32_t* kept, const float* scores, const T* bias, int tokens, int groups, int each,
         int taken, int best) {
  const std::size_t n = token_of_warp();
  if (n >= tokens) return;
  const int experts = groups * each;
  const float* x = scores + n * experts;
  std::int32_t* k = kept + n * taken;
  pick last{INFINITY, -1};
  for (int i = 0; i < taken; ++i) {
    last = next_largest(scores_of_groups<T>{{x, bias}, each, best}, groups, last);
    if (lane_of_warp() == 0) k[i] = last.expert;
  }
  __syncwarp();
  for (int e = lane_of_warp(); e < experts; e += warp_size) {
    bool is_kept = false;
    for (int i = 0; i < taken; ++i) is_kept |= k[i] == e / each;
    y[n * experts + e] = is_kept ? x[e] : -INFINITY;
  }
}

/// Chooses the `picks` largest scores and computes the weights from the logits.
/// Shapes: weights f32, chosen (tokens, picks), logits, scores f32 (tokens, experts), bias (experts) or null.
template <bool Softmax, class T>
__global__ void __launch_bounds__(router_block)
    take_top_by(float* weights, std::int32_t* chosen, const T* logits, const float* scores, const T* bias,
                int tokens, int experts, int picks) {
  const std::size_t n = token_of_warp();
  if (n >= tokens) return;
  const T* x = logits + n * experts;
  float2 row{};
  if constexpr (Softmax) row = softmax_of_row(x, experts);
  pick last{INFINITY, -1};
  for (int k = 0; k < picks; ++k) {
    last = next_largest(biased_scores<T>{scores + n * experts, bias}, experts, last);
    if (lane_of_warp() != 0) continue;
    const float logit = to_float(x[last.expert]);
    chosen[n * picks + k] = last.expert;
    weights[n * picks + k] = Softmax ? expf(logit - row.x) / row.y : logistic(logit);
  }
}

/// Counts the choices of each expert, one block for each expert.
/// Shapes: counts f32 (experts), chosen (choices).
__global__ void __launch_bounds__(router_block)
    count(float* counts, const std::int32_t* chosen, std::size_t choices, bool accumulate) {
  const int expert = static_cast<int>(blockIdx.x);
  float own = 0.0f;
  for (std::size_t i = threadIdx.x; i < choices; i += router_block) own += chosen[i] == expert ? 1.0f : 0.0f;
  own = block_sum(own);
  if (threadIdx.x == 0) counts[expert] = (accumulate ? counts[expert] : 0.0f) + own;
}

template <bool Softmax, class T>
void launch_scores(const lane& on, const char* name, at scores, at logits, int tokens, int experts) {
  launch(on, name, score<Softmax, T>, ceil_div(tokens, tokens_of_block), router_block, 0,
         on.at<float>(scores), on.at<T>(logits), tokens, experts);
}
template <class T>
void launch_keep(const lane& on, const char* name, at y, at kept, at scores, const T* bias, int tokens,
                 int groups, int each, int taken, double best) {
  launch(on, name, keep<T>, ceil_div(tokens, tokens_of_block), router_block, 0, on.at<float>(y),
         on.at<std::int32_t>(kept), on.at<float>(scores), bias, tokens, groups, each, taken,
         static_cast<int>(best));
}
template <bool Softmax, class T>
void launch_top_by(const lane& on, const char* name, at weights, at chosen, at logits, at scores,
                   const T* bias, int tokens, int experts, int picks) {
  launch(on, name, take_top_by<Softmax, T>, ceil_div(tokens, tokens_of_block), router_block, 0,
         on.at<float>(weights), on.at<std::int32_t>(chosen), on.at<T>(logits), on.at<float>(scores), bias,
         tokens, experts, picks);
}
template <class T>
constexpr const T* no_bias = nullptr;

}  // namespace

template <class T>
void softmax_scores(const lane& on, at scores, at logits, int tokens, int experts) {
  launch_scores<true, T>(on, "softmax_scores", scores, logits, tokens, experts);
}
template <class T>
void sigmoid_scores(const lane& on, at scores, at logits, int tokens, int experts) {
  launch_scores<false, T>(on, "sigmoid_scores", scores, logits, tokens, experts);
}

template <class T>
void keep_groups(const lane& on, at y, at kept, at scores, int tokens, int groups, int each, int taken,
                 double best) {
  launch_keep<T>(on, "keep_groups", y, kept, scores, no_bias<T>, tokens, groups, each, taken, best);
}
template <class T>
void biased_keep_groups(const lane& on, at y, at kept, at scores, at bias, int tokens, int groups, int each,
                        int taken, double best) {
  launch_keep<T>(on, "biased_keep_groups", y, kept, scores, on.at<T>(bias), tokens, groups, each, taken,
                 best);
}

template <class T>
void softmax_top_by(const lane& on, at weights, at chosen, at logits, at scores, int tokens, int experts,
                    int picks) {
  launch_top_by<true, T>(on, "softmax_top_by", weights, chosen, logits, scores, no_bias<T>, tokens, experts,
                         picks);
}
template <class T>
void sigmoid_top_by(const lane& on, at weights, at chosen, at logits, at scores, int tokens, int experts,
                    int picks) {
  launch_top_by<false, T>(on, "sigmoid_top_by", weights, chosen, logits, scores, no_bias<T>, tokens, experts,
                          picks);
}
template <class T>
void biased_softmax_top_by(const lane& on, at weights, at chosen, at logits, at scores, at bias, int tokens,
                           int experts, int picks) {
  launch_top_by<true, T>(on, "biased_softmax_top_by", weights, chosen, logits, scores, on.at<T>(bias), tokens,
                         experts, picks);
}
template <class T>
void biased_sigmoid_top_by(const lane& on, at weights, at chosen, at logits, at scores, at bias, int tokens,
                           int experts, int picks) {
  launch_top_by<false, T>(on, "biased_sigmoid_top_by", weights, chosen, logits, scores, on.at<T>(bias),
                          tokens, experts, picks);
}

template <class T>
void count_choices(const lane& on, at dbias, at chosen, int tokens, int picks, int experts, bool accumulate) {
  launch(on, "count_choices", count, experts, router_block, 0, on.at<float>(dbias),
         on.at<std::int32_t>(chosen), std::size_t{static_cast<unsigned>(tokens)} * picks, accumulate);
}

#define RANKC_FOR(T)                                                                            \
  template void softmax_scores<T>(const lane&, at, at, int, int);                               \
  template void sigmoid_scores<T>(const lane&, at, at, int, int);                               \
  template void keep_groups<T>(const lane&, at, at, at, int, int, int, int, double);            \
  template void biased_keep_groups<T>(const lane&, at, at, at, at, int, int, int, int, double); \
  template void softmax_top_by<T>(const lane&, at, at, at, at, int, int, int);                  \
  template void sigmoid_top_by<T>(const lane&, at, at, at, at, int, int, int);                  \
  template void biased_softmax_top_by<T>(const lane&, at, at, at, at, at, int, int, int);       \
  template void biased_sigmoid_top_by<T>(const lane&, at, at, at, at, at, int, int, int);       \
  template void count_choices<T>(const lane&, at, at, int, int, int, bool);
RANKC_FOR(float)
RANKC_FOR(bf16)
#undef RANKC_FOR

}  // namespace rankc::runtime::cuda
