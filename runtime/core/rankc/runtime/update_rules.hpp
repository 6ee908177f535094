// SPDX-License-Identifier: Apache-2.0
// The arithmetic of the optimizers for one element, the same on every target.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/host_device.hpp>

#include <cmath>
#include <cstdint>

namespace rankc::runtime {

/// A step's factors for the update of an element, computed in f64. T is the type of the update.
template <class T>
struct update_factors {
  T clip;
  T keep;                      // 1 - lr * weight_decay: the factor of a weight that decays
  T beta1, new1, beta2, new2;  // new = 1 - beta
  T step_size;                 // lr / (1 - beta1^step)
  T second_scale;              // 1 / sqrt(1 - beta2^step)
  T eps;
  T lr, weight_decay, momentum;  // for SGD
  bool nesterov;
  std::uint32_t step, rounding_seed;
};

template <class T>
update_factors<T> factors_of(const step_input& in) {
  const double step = static_cast<double>(in.step - in.skipped);
  const auto as = [](double x) { return static_cast<T>(x); };
  return {.clip = as(in.clip),
          .keep = as(1.0 - in.lr * in.weight_decay),
          .beta1 = as(in.beta1),
          .new1 = as(1.0 - in.beta1),
          .beta2 = as(in.beta2),
          .new2 = as(1.0 - in.beta2),
          .step_size = as(in.lr / (1.0 - std::pow(in.beta1, step))),
          .second_scale = as(1.0 / std::sqrt(1.0 - std::pow(in.beta2, step))),
          .eps = as(in.eps),
          .lr = as(in.lr),
          .weight_decay = as(in.weight_decay),
          .momentum = as(in.momentum),
          .nesterov = in.nesterov,
          .step = static_cast<std::uint32_t>(in.step),
          .rounding_seed = in.rounding_seed};
}

/// AdamW as in torch.optim.AdamW.
/// Source: Loshchilov and Hutter 2019.
struct adamw_rule {
  static constexpr int moments = 2;
  template <class T>
  RANKC_HOST_DEVICE static void update(T& w, T g, T& m, T& v, const update_factors<T>& h, bool decays) {
    m += h.new1 * (g - m);
    v = h.beta2 * v + h.new2 * g * g;
    w = w * (decays ? h.keep : T(1)) - h.step_size * m / (std::sqrt(v) * h.second_scale + h.eps);
  }
};

/// SGD as in torch.optim.SGD.
/// Source: Sutskever et al. 2013.
template <bool Momentum>
struct sgd_rule {
  static constexpr int moments = Momentum;
  template <class T>
  RANKC_HOST_DEVICE static void update(T& w, T g, T& m, T&, const update_factors<T>& h, bool decays) {
    if (decays) g += h.weight_decay * w;
    if constexpr (Momentum) {
      m = h.momentum * m + g;
      g = h.nesterov ? g + h.momentum * m : m;
    }
    w -= h.lr * g;
  }
};

/// The new bias of an expert in its router's choice. It rises if the step chose the expert less often than
/// the mean, and falls if more often.
template <class T>
RANKC_HOST_DEVICE T balanced(T bias, T choices, T rate, T mean) {
  if (choices < mean) return bias + rate;
  return choices > mean ? bias - rate : bias;
}

}  // namespace rankc::runtime
