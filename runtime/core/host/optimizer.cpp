// SPDX-License-Identifier: Apache-2.0
// The optimizer step over flat regions: gradient norm, AdamW, SGD, and clearing.
#include <rankc/runtime/call_recorder.hpp>
#include <rankc/runtime/host/kernels.hpp>
#include <rankc/runtime/update_rules.hpp>

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

namespace {

/// Whether gradients of this norm make an update: all ranks have the same norm, so that none updates where
/// one does not.
template <class T>
bool is_applied(const lane& on, at norm_squared) {
  return std::isfinite(*on.at<T>(norm_squared));
}

template <class T>
T factor_of_clip(const lane& on, at norm_squared) {
  const double clip = on.of->input.clip;
  if (clip <= 0) return 1;
  const double factor = clip / (std::sqrt(static_cast<double>(*on.at<T>(norm_squared))) + 1e-6);
  return static_cast<T>(factor > 1 ? 1 : factor);
}

template <class T>
T read(T x) {
  return x;
}
template <class T>
T read(bf16 x) {
  return widened(x);
}

/// Keeps what is given as it is, or rounded.
struct to_nearest {
  template <class T>
  void operator()(T& to, T x, std::uint16_t element_bits::*) const {
    to = x;
  }
  template <class T>
  void operator()(bf16& to, T x, std::uint16_t element_bits::*) const {
    to = rounded_to_nearest(static_cast<float>(x));
  }
};
struct by_bits {
  element_bits bits;
  template <class T>
  void operator()(T& to, T x, std::uint16_t element_bits::*) const {
    to = x;
  }
  template <class T>
  void operator()(bf16& to, T x, std::uint16_t element_bits::* which) const {
    to = rounded_stochastically(static_cast<float>(x), bits.*which);
  }
};

/// Call `update(i, decay, keep)` for every element of some ranges, with what keeps its results.
template <rounding How>
void for_each_element(const lane& on, std::span<const range> ranges, auto&& update) {
  if constexpr (How == rounding::nearest) {
    for (const range& of : ranges) {
      if (of.balances.any()) continue;
      const bool decay = of.decay;
#pragma omp simd
      for (std::size_t i = of.first; i < of.first + of.count; ++i) update(i, decay, to_nearest{});
    }
  } else {
    const step_input& in = on.of->input;
    for_each_tensor(*on.of, ranges, [&](const range& of, const element_place& place) {
      if (of.balances.any()) return;
      bits_of_elements bits(place.tensor, in.rounding_seed, static_cast<std::uint32_t>(in.step));
      for (std::size_t i = 0; i < of.count; ++i) update(of.first + i, of.decay, by_bits{bits[place[i]]});
    });
  }
}

/// Biases of experts' scores: whatever the norm, numbers of choices are not clipped.
template <class T, class Weight>
void balance(Weight* weight, const T* choices, std::span<const range> ranges) {
  for (const range& of : ranges)
    for (std::size_t i = of.first; of.balances.any() && i < of.first + of.count; ++i)
      to_nearest{}(weight[i],
                   balanced(read<T>(weight[i]), choices[i], static_cast<T>(of.balances.rate),
                            static_cast<T>(of.balances.mean)),
                   &element_bits::weight);
}

/// Every element by the rule, in T. The moments that the rule has not lie nowhere.
template <class Rule, class T, class Weight, class Moment, rounding How>
void update(const lane& on, at weights, at gradients, at first_moment, at second_moment, at norm_squared,
            std::span<const range> ranges) {
  if (!is_applied<T>(on, norm_squared)) return;
  const update_factors<T> factors = factors_of<T>(on.of->input);
  const T scale = factor_of_clip<T>(on, norm_squared);
  Weight* weight = on.at<Weight>(weights);
  Moment* first = Rule::moments > 0 ? on.at<Moment>(first_moment) : nullptr;
  Moment* second = Rule::moments > 1 ? on.at<Moment>(second_moment) : nullptr;
  const T* gradient = on.at<T>(gradients);
  for_each_element<How>(on, ranges, [=](std::size_t i, bool decay, const auto& keep) {
    T w = read<T>(weight[i]), m = 0, v = 0;
    if constexpr (Rule::moments > 0) m = read<T>(first[i]);
    if constexpr (Rule::moments > 1) v = read<T>(second[i]);
    Rule::update(w, gradient[i] * scale, m, v, factors, decay);
    if constexpr (Rule::moments > 0) keep(first[i], m, &element_bits::first_moment);
    if constexpr (Rule::moments > 1) keep(second[i], v, &element_bits::second_moment);
    keep(weight[i], w, &element_bits::weight);
  });
  balance(weight, gradient, ranges);
}

}  // namespace

template <class T, class Weight, class Moment, rounding How>
void adamw(const lane& on, at weights, at gradients, at first_moment, at second_moment, at norm_squared,
           std::span<const range> ranges) {
  update<adamw_rule, T, Weight, Moment, How>(on, weights, gradients, first_moment, second_moment,
                                             norm_squared, ranges);
}

template <class T, class Weight, class Moment, rounding How>
void sgd(const lane& on, at weights, at gradients, at momentum, at norm_squared,
         std::span<const range> ranges) {
  constexpr bool has_momentum = !std::is_same_v<Moment, no_moment>;
  update<sgd_rule<has_momentum>, T, Weight, Moment, How>(on, weights, gradients, momentum, {}, norm_squared,
                                                         ranges);
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

// What may be kept in which type, and how that is rounded. Programs of the host have weights in their own
// type; those in bf16 are here to be compared with GPUs'.
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
