// SPDX-License-Identifier: Apache-2.0
// The optimizer step over flat regions: gradient norm, AdamW, SGD, and clearing.
#define RANKC_SIMD _Pragma("omp simd")  // for the loops in update_elements.hpp
#include <rankc/runtime/call_recorder.hpp>
#include <rankc/runtime/host/kernels.hpp>
#include <rankc/runtime/host/update_elements.hpp>

#include <algorithm>
#include <cmath>

namespace rankc::runtime::host {

template <class T>
void sum_squares(const lane& on, at total, at gradients, std::span<const range> ranges, bool accumulate) {
  double sum = 0;
  for (const range& of : ranges) {
    const T* grad = on.at<T>(gradients) + of.first;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < of.count; ++i)
      sum += static_cast<double>(grad[i]) * static_cast<double>(grad[i]);
  }
  T& out = *on.at<T>(total);
  out = static_cast<T>((accumulate ? static_cast<double>(out) : 0.0) + sum);
}

template <class T, class Weight, class Moment, rounding How>
void adamw(const lane& on, at weights, at gradients, at first_moment, at second_moment, at norm_squared,
           std::span<const range> ranges) {
  update_elements<adamw_rule, T, Weight, Moment, How>(on, weights, gradients, {first_moment, second_moment},
                                                      norm_squared, ranges);
}

template <class T, class Weight, class Moment, rounding How>
void sgd(const lane& on, at weights, at gradients, at momentum, at norm_squared,
         std::span<const range> ranges) {
  constexpr bool has_momentum = !std::is_same_v<Moment, no_moment>;
  update_elements<sgd_rule<has_momentum>, T, Weight, Moment, How>(on, weights, gradients, {momentum, {}},
                                                                  norm_squared, ranges);
}

template <class T>
void clear(const lane& on, at out, std::size_t count) {
  if (call_recorder* const to = recorder_of(on)) return to->clear(on.index, out, count * sizeof(T));
  std::fill_n(on.at<T>(out), count, T(0));
}

template <class T>
void copy(const lane& on, at y, at x, std::size_t count) {
  std::copy_n(on.at<T>(x), count, on.at<T>(y));
}

template decltype(sum_squares<float>) sum_squares<float>;
template decltype(sum_squares<double>) sum_squares<double>;
template decltype(clear<float>) clear<float>;
template decltype(clear<double>) clear<double>;
template decltype(copy<float>) copy<float>;
template decltype(copy<double>) copy<double>;

// The types of weights and moments, and the rounding to bf16. Host programs have weights in their own type.
// Those in bf16 exist for comparisons with GPUs.
#define RANKC_BF16_MOMENTS(T, Weight, How)                                    \
  template decltype(adamw<T, Weight, bf16, How>) adamw<T, Weight, bf16, How>; \
  template decltype(sgd<T, Weight, bf16, How>) sgd<T, Weight, bf16, How>;
#define RANKC_ALL_MOMENTS(T, Weight, How)                                           \
  RANKC_BF16_MOMENTS(T, Weight, How)                                                \
  template decltype(adamw<T, Weight, T, How>) adamw<T, Weight, T, How>;             \
  template decltype(sgd<T, Weight, no_moment, How>) sgd<T, Weight, no_moment, How>; \
  template decltype(sgd<T, Weight, T, How>) sgd<T, Weight, T, How>;
RANKC_ALL_MOMENTS(float, float, rounding::nearest)
RANKC_ALL_MOMENTS(double, double, rounding::nearest)
RANKC_BF16_MOMENTS(float, float, rounding::stochastic)
RANKC_BF16_MOMENTS(double, double, rounding::stochastic)
RANKC_ALL_MOMENTS(float, bf16, rounding::stochastic)
#undef RANKC_ALL_MOMENTS
#undef RANKC_BF16_MOMENTS

}  // namespace rankc::runtime::host
