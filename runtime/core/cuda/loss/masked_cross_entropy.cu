// SPDX-License-Identifier: Apache-2.0
// Cross entropy that ignores negative labels, with or without a weight for each label, and the number by
// which it is divided: that of the labels, or the sum of their weights.
#include <rankc/runtime/cuda/kernels.hpp>

#include "cross_entropy_hopper.hpp"
#include "cross_entropy_rows.cuh"

namespace rankc::runtime::cuda {
namespace {

constexpr int sum_threads = 1024;

/// The weight of a label: 0 if it is ignored, and 1 if labels have no weights.
struct label_weights {
  const std::int32_t* targets;
  const float* weights = nullptr;

  __device__ float operator()(int n) const {
    if (targets[n] < 0) return 0.0f;
    return weights == nullptr ? 1.0f : weights[n];
  }
};

/// count = or += the sum of the weights of labels, by one block.
__global__ void count_of(float* count, label_weights weight, int tokens, bool accumulate) {
  float sum = 0.0f;
#pragma unroll 8
  for (int n = threadIdx.x; n < tokens; n += sum_threads) sum += weight(n);
  sum = block_sum(sum);
  if (threadIdx.x == 0) *count = (accumulate ? *count : 0.0f) + sum;
}

/// total = or += minus infinity if no label counts, else 0, by one thread.
__global__ void skip_of(float* total, const float* count, bool accumulate) {
  *total = (accumulate ? *total : 0.0f) - (*count == 0.0f ? INFINITY : 0.0f);
}

/// loss = or += scale / count * sum of weight * (log(sums0) - sums1) over the labels, by one block.
__global__ void masked_loss_of(float* loss, const float* sums, label_weights weight, const float* count,
                               int tokens, float scale, bool accumulate) {
  float sum = 0.0f;
#pragma unroll 8
  for (int n = threadIdx.x; n < tokens; n += sum_threads) {
    const float* of_token = sums + 2 * static_cast<std::size_t>(n);
    if (const float w = weight(n); w > 0.0f) sum += w * (logf(of_token[0]) - of_token[1]);
  }
  sum = block_sum(sum);
  if (threadIdx.x != 0) return;
  *loss = (accumulate ? *loss : 0.0f) + (sum == 0.0f ? 0.0f : scale / *count * sum);
}

/// dsums = (f / sums0, -f), where f is the factor of the token.
/// Shapes: dsums, sums f32 (tokens, 2).
__global__ void masked_loss_backward(float* dsums, const float* sums, const std::int32_t* targets,
                                     loss_factor factor, int tokens) {
  const std::size_t n = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (n >= static_cast<std::size_t>(tokens)) return;
  const float of_token = factor(targets[n], n);
  dsums[2 * n] = of_token / sums[2 * n];
  dsums[2 * n + 1] = -of_token;
}

}  // namespace

template <class T>
void count_labels(const lane& on, at count, at targets, int tokens, bool accumulate) {
  launch(on, "count_labels", count_of, 1, sum_threads, 0, on.at<float>(count),
         label_weights{on.at<std::int32_t>(targets)}, tokens, accumulate);
}

template <class T>
void sum_weights(const lane& on, at count, at targets, at weights, int tokens, bool accumulate) {
  launch(on, "sum_weights", count_of, 1, sum_threads, 0, on.at<float>(count),
         label_weights{on.at<std::int32_t>(targets), on.at<float>(weights)}, tokens, accumulate);
}

template <class T>
void skip_unlabeled(const lane& on, at total, at count, bool accumulate) {
  launch(on, "skip_unlabeled", skip_of, 1, 1, 0, on.at<float>(total), on.at<float>(count), accumulate);
}

template <class T>
void masked_cross_entropy(const lane& on, at loss, at sums, at targets, at count, int tokens, double scale,
                          bool accumulate) {
  launch(on, "masked_cross_entropy", masked_loss_of, 1, sum_threads, 0, on.at<float>(loss),
         on.at<float>(sums), label_weights{on.at<std::int32_t>(targets)}, on.at<float>(count), tokens, scale,
         accumulate);
}

template <class T>
void weighted_cross_entropy(const lane& on, at loss, at sums, at targets, at weights, at count, int tokens,
                            double scale, bool accumulate) {
  launch(on, "weighted_cross_entropy", masked_loss_of, 1, sum_threads, 0, on.at<float>(loss),
         on.at<float>(sums), label_weights{on.at<std::int32_t>(targets), on.at<float>(weights)},
         on.at<float>(count), tokens, scale, accumulate);
}

template <class T>
void masked_cross_entropy_grad(const lane& on, at dsums, at sums, at targets, at count, int tokens,
                               double scale) {
  launch(on, "masked_cross_entropy_grad", masked_loss_backward, ceil_div(tokens, 256), 256, 0,
         on.at<float>(dsums), on.at<float>(sums), on.at<std::int32_t>(targets),
         loss_factor{static_cast<float>(scale), on.at<float>(count)}, tokens);
}

template <class T>
void weighted_cross_entropy_grad(const lane& on, at dsums, at sums, at targets, at weights, at count,
                                 int tokens, double scale) {
  launch(on, "weighted_cross_entropy_grad", masked_loss_backward, ceil_div(tokens, 256), 256, 0,
         on.at<float>(dsums), on.at<float>(sums), on.at<std::int32_t>(targets),
         loss_factor{static_cast<float>(scale), on.at<float>(count), on.at<float>(weights)}, tokens);
}

template void count_labels<float>(const lane&, at, at, int, bool);
template void count_labels<bf16>(const lane&, at, at, int, bool);
template void sum_weights<float>(const lane&, at, at, at, int, bool);
template void sum_weights<bf16>(const lane&, at, at, at, int, bool);
template void skip_unlabeled<float>(const lane&, at, at, bool);
template void skip_unlabeled<bf16>(const lane&, at, at, bool);
template void masked_cross_entropy<float>(const lane&, at, at, at, at, int, double, bool);
template void masked_cross_entropy<bf16>(const lane&, at, at, at, at, int, double, bool);
template void masked_cross_entropy_grad<float>(const lane&, at, at, at, at, int, double);
template void masked_cross_entropy_grad<bf16>(const lane&, at, at, at, at, int, double);
template void weighted_cross_entropy<float>(const lane&, at, at, at, at, at, int, double, bool);
template void weighted_cross_entropy<bf16>(const lane&, at, at, at, at, at, int, double, bool);
template void weighted_cross_entropy_grad<float>(const lane&, at, at, at, at, at, int, double);
template void weighted_cross_entropy_grad<bf16>(const lane&, at, at, at, at, at, int, double);

}  // namespace rankc::runtime::cuda
