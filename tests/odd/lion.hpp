// SPDX-License-Identifier: Apache-2.0
// A user's optimizer: its row for plans, its rule, and its kernels for both targets.
// Source: Chen et al. 2023.
#pragma once

#if defined(RANKC_HOST_KERNELS) || defined(RANKC_CUDA_KERNELS)

#include <rankc/runtime/update_rules.hpp>

namespace user {

/// The weight moves by the learning rate, against the sign of the weighted mean of gradient and moment.
struct lion_rule {
  static constexpr int moments = 1;
  template <class T>
  RANKC_HOST_DEVICE static void update(T& w, T g, T& m, T&, const rankc::runtime::update_factors<T>& h,
                                       bool decays) {
    const T mean = h.beta1 * m + h.new1 * g;
    w = w * (decays ? h.keep : T(1)) - h.lr * (T(mean > 0) - T(mean < 0));
    m = h.beta2 * m + h.new2 * g;
  }
};

}  // namespace user

#endif

#if defined(RANKC_HOST_KERNELS)

#include <rankc/runtime/host/update_elements.hpp>

namespace user {

using rankc::runtime::at, rankc::runtime::range, rankc::runtime::rounding;

template <class T, class Weight = T, class Moment = T, rounding How = rounding::nearest>
void lion(const rankc::host::lane& on, at weights, at gradients, at momentum, at norm_squared,
          std::span<const range> ranges) {
  rankc::host::update_elements<lion_rule, T, Weight, Moment, How>(on, weights, gradients, {momentum, {}},
                                                                  norm_squared, ranges);
}

}  // namespace user

#elif defined(RANKC_CUDA_KERNELS)

#include <rankc/runtime/cuda/rank.hpp>

namespace user {

using rankc::runtime::at, rankc::runtime::range;

template <class T>
void lion(const rankc::cuda::lane&, at weights, at gradients, at momentum, at norm_squared,
          std::span<const range>);

#ifdef __CUDACC__
/// The pointers to weights, gradients and moments begin at the range.
template <class T>
__global__ void lion_kernel(float* w, const float* g, float* m, T* copy, const float* norm_squared,
                            const rankc::cuda::hyperparameters* input, range of, bool is_balanced) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= of.count || !isfinite(*norm_squared)) return;
  const rankc::cuda::hyperparameters h = *input;
  const float scale = h.clip > 0 ? fminf(1, h.clip / (sqrtf(*norm_squared) + 1e-6f)) : 1;
  float none = 0;
  if (is_balanced)
    w[i] = rankc::runtime::balanced(w[i], g[i], float(of.balances.rate), float(of.balances.mean));
  else lion_rule::update(w[i], g[i] * scale, m[i], none, h, of.decay);
  if (copy) copy[i] = static_cast<T>(w[i]);
}

template <class T>
void lion(const rankc::cuda::lane& on, at weights, at gradients, at momentum, at norm_squared,
          std::span<const range> ranges) {
  constexpr bool has_copy = sizeof(T) < sizeof(float);
  for (const range& of : ranges) {
    const unsigned blocks = static_cast<unsigned>((of.count + 255) / 256);
    T* copy = has_copy ? on.at<T>(on.of->where->working_copy) + of.first : nullptr;
    if (blocks == 0) continue;
    // clang-format off
    lion_kernel<<<blocks, 256, 0, on.stream>>>(
        on.at<float>(weights) + of.first, on.at<float>(gradients) + of.first,
        on.at<float>(momentum) + of.first, copy, on.at<float>(norm_squared), on.of->input, of,
        of.balances.any());
    // clang-format on
  }
}
template decltype(lion<float>) lion<float>;
template decltype(lion<rankc::cuda::bf16>) lion<rankc::cuda::bf16>;
#endif

}  // namespace user

#else

#include <rankc/recipe/optimizer.hpp>

namespace user {

struct lion {
  double beta1 = 0.9, beta2 = 0.99;

  static constexpr rankc::optimizer_row row{
      .name = "lion",
      .title = "Lion",
      .hyperparameters = {{.name = "beta1",
                           .range = rankc::hyperparameter_range::fraction,
                           .rule = 235,
                           .usual = "0.9 is usual"},
                          {.name = "beta2",
                           .range = rankc::hyperparameter_range::fraction,
                           .rule = 235,
                           .usual = "0.99 is usual"}},
      .moments = {{"momentum", "Lion's"}},
      .kernel = "user::lion",
      .header = "lion.hpp"};
  constexpr std::array<double, 2> numbers() const { return {beta1, beta2}; }
};

}  // namespace user

#endif
