// SPDX-License-Identifier: Apache-2.0
// A user's optimizer with a hyperparameter that no other optimizer has: its row for plans, its rule, and its
// kernels for both targets.
// Source: Duchi et al. 2011; lr_decay and eps as in torch.optim.Adagrad.
#pragma once

#if defined(RANKC_HOST_KERNELS) || defined(RANKC_CUDA_KERNELS)

#include <rankc/runtime/update_rules.hpp>

#include <cmath>
#include <span>

namespace user {

/// The weight moves by the gradient over the root of its sum of squares. Weight decay is added to the
/// gradient, and the learning rate falls by lr_decay from step to step.
struct adagrad_rule {
  static constexpr int moments = 1;
  double lr_decay, eps;
  /// Read lr_decay and eps from the numbers of the row.
  explicit adagrad_rule(std::span<const double> numbers) : lr_decay(numbers[0]), eps(numbers[1]) {}

  template <class T>
  RANKC_HOST_DEVICE void update(T& w, T g, T& squares, T&, const rankc::runtime::update_factors<T>& h,
                                bool decays) const {
    if (decays) g += h.weight_decay * w;
    squares += g * g;
    const T lr = h.lr / (1 + static_cast<T>(lr_decay) * static_cast<T>(h.step - 1));
    w -= lr * g / (std::sqrt(squares) + static_cast<T>(eps));
  }
};

}  // namespace user

#endif

#if defined(RANKC_HOST_KERNELS)

#include <rankc/runtime/host/update_elements.hpp>

namespace user {

using rankc::runtime::at, rankc::runtime::range, rankc::runtime::rounding;

template <class T, class Weight = T, class Moment = T, rounding How = rounding::nearest>
void adagrad(const rankc::host::lane& on, at weights, at gradients, at squares, at norm_squared,
             std::span<const range> ranges, std::span<const double> numbers) {
  rankc::host::update_elements<adagrad_rule, T, Weight, Moment, How>(
      on, weights, gradients, {squares, {}}, norm_squared, ranges, adagrad_rule(numbers));
}

}  // namespace user

#elif defined(RANKC_CUDA_KERNELS)

#include <rankc/runtime/cuda/rank.hpp>

namespace user {

using rankc::runtime::at, rankc::runtime::range;

template <class T>
void adagrad(const rankc::cuda::lane&, at weights, at gradients, at squares, at norm_squared,
             std::span<const range>, std::span<const double> numbers);

#ifdef __CUDACC__
/// The pointers to weights, gradients and moments begin at the range.
template <class T>
__global__ void adagrad_kernel(float* w, const float* g, float* squares, T* copy, const float* norm_squared,
                               const rankc::cuda::hyperparameters* input, range of, bool is_balanced,
                               adagrad_rule rule) {
  const std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= of.count || !isfinite(*norm_squared)) return;
  const rankc::cuda::hyperparameters h = *input;
  const float scale = h.clip > 0 ? fminf(1, h.clip / (sqrtf(*norm_squared) + 1e-6f)) : 1;
  float none = 0;
  if (is_balanced)
    w[i] = rankc::runtime::balanced(w[i], g[i], float(of.balances.rate), float(of.balances.mean));
  else rule.update(w[i], g[i] * scale, squares[i], none, h, of.decay);
  if (copy) copy[i] = static_cast<T>(w[i]);
}

template <class T>
void adagrad(const rankc::cuda::lane& on, at weights, at gradients, at squares, at norm_squared,
             std::span<const range> ranges, std::span<const double> numbers) {
  constexpr bool has_copy = sizeof(T) < sizeof(float);
  for (const range& of : ranges) {
    const unsigned blocks = static_cast<unsigned>((of.count + 255) / 256);
    T* copy = has_copy ? on.at<T>(on.of->where->working_copy) + of.first : nullptr;
    if (blocks == 0) continue;
    // clang-format off
    adagrad_kernel<<<blocks, 256, 0, on.stream>>>(
        on.at<float>(weights) + of.first, on.at<float>(gradients) + of.first,
        on.at<float>(squares) + of.first, copy, on.at<float>(norm_squared), on.of->input, of,
        of.balances.any(), adagrad_rule(numbers));
    // clang-format on
  }
}
template decltype(adagrad<float>) adagrad<float>;
template decltype(adagrad<rankc::cuda::bf16>) adagrad<rankc::cuda::bf16>;
#endif

}  // namespace user

#else

#include <rankc/recipe/optimizer.hpp>

namespace user {

struct adagrad {
  double lr_decay = 0, eps = 1e-10;

  static constexpr rankc::optimizer_row row{
      .name = "adagrad",
      .title = "Adagrad",
      .hyperparameters = {{.name = "lr_decay",
                           .range = rankc::hyperparameter_range::non_negative,
                           .usual = "0 is usual",
                           .printed = "lr_decay"},
                          {.name = "eps",
                           .range = rankc::hyperparameter_range::divisor,
                           .usual = "1e-10 is usual"}},
      .moments = {{"squares", "Adagrad's"}},
      .kernel = "user::adagrad",
      .header = "adagrad.hpp"};
  constexpr std::array<double, 2> numbers() const { return {lr_decay, eps}; }
};

}  // namespace user

#endif
