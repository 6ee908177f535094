// SPDX-License-Identifier: Apache-2.0
// The update of each element of a rank by the rule of an optimizer (update_rules.hpp), the runtime's or a
// user's.
#pragma once
#include <rankc/runtime/host/rank.hpp>
#include <rankc/runtime/random_bits.hpp>
#include <rankc/runtime/update_rules.hpp>

#include <cmath>
#include <span>

#ifndef RANKC_SIMD
#define RANKC_SIMD  // a source that is compiled with `omp simd` defines it as that pragma
#endif

namespace rankc::runtime::host {

namespace detail {

/// True if gradients of this norm are applied. All ranks have the same norm, so either all update or none
/// does.
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
T read(bf16_bits x) {
  return widened(x);
}

/// Writes a result as it is, or rounded to the nearest bf16.
struct to_nearest {
  template <class T>
  void operator()(T& to, T x, std::uint16_t element_bits::*) const {
    to = x;
  }
  template <class T>
  void operator()(bf16_bits& to, T x, std::uint16_t element_bits::*) const {
    to = rounded_to_nearest(static_cast<float>(x));
  }
};
/// Writes a result as it is, or rounded to bf16 by random bits.
struct by_bits {
  element_bits bits;
  template <class T>
  void operator()(T& to, T x, std::uint16_t element_bits::*) const {
    to = x;
  }
  template <class T>
  void operator()(bf16_bits& to, T x, std::uint16_t element_bits::* which) const {
    to = rounded_stochastically(static_cast<float>(x), bits.*which);
  }
};

/// Calls `update(i, decay, keep)` for each element of some ranges. `keep` writes its results.
template <rounding How>
void for_each_element(const lane& on, std::span<const range> ranges, auto&& update) {
  if constexpr (How == rounding::nearest) {
    for (const range& of : ranges) {
      if (of.balances.any()) continue;
      const bool decay = of.decay;
      RANKC_SIMD
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

/// Updates the biases of expert scores. Their gradients are numbers of choices, which are not clipped.
template <class T, class Weight>
void balance(Weight* weight, const T* choices, std::span<const range> ranges) {
  for (const range& of : ranges)
    for (std::size_t i = of.first; of.balances.any() && i < of.first + of.count; ++i)
      to_nearest{}(weight[i],
                   balanced(read<T>(weight[i]), choices[i], static_cast<T>(of.balances.rate),
                            static_cast<T>(of.balances.mean)),
                   &element_bits::weight);
}

}  // namespace detail

/// The regions of an optimizer's moments. A moment that the optimizer does not keep has no region.
struct moment_regions {
  at first, second;
};

/// Updates each element by `rule.update`, in T. Rule::moments is the number of its moments. Weights and
/// moments are stored as Weight and Moment. Gradients are clipped by the norm. If the norm is not finite, no
/// element changes.
/// Shapes: weights, gradients and moments are whole regions; ranges count their elements.
template <class Rule, class T, class Weight, class Moment, rounding How>
void update_elements(const lane& on, at weights, at gradients, moment_regions moments, at norm_squared,
                     std::span<const range> ranges, const Rule& rule = {}) {
  if (!detail::is_applied<T>(on, norm_squared)) return;
  const update_factors<T> factors = factors_of<T>(on.of->input);
  const T scale = detail::factor_of_clip<T>(on, norm_squared);
  Weight* weight = on.at<Weight>(weights);
  Moment* first = Rule::moments > 0 ? on.at<Moment>(moments.first) : nullptr;
  Moment* second = Rule::moments > 1 ? on.at<Moment>(moments.second) : nullptr;
  const T* gradient = on.at<T>(gradients);
  detail::for_each_element<How>(on, ranges, [=](std::size_t i, bool decay, const auto& keep) {
    T w = detail::read<T>(weight[i]), m = 0, v = 0;
    if constexpr (Rule::moments > 0) m = detail::read<T>(first[i]);
    if constexpr (Rule::moments > 1) v = detail::read<T>(second[i]);
    rule.update(w, gradient[i] * scale, m, v, factors, decay);
    if constexpr (Rule::moments > 0) keep(first[i], m, &element_bits::first_moment);
    if constexpr (Rule::moments > 1) keep(second[i], v, &element_bits::second_moment);
    keep(weight[i], w, &element_bits::weight);
  });
  detail::balance(weight, gradient, ranges);
}

}  // namespace rankc::runtime::host
