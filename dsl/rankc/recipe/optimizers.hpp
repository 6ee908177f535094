// SPDX-License-Identifier: Apache-2.0
// The optimizers that the runtime has kernels for.
#pragma once
#include <rankc/recipe/optimizer.hpp>

#include <array>

namespace rankc {

/// AdamW. The recipe's weight decay shrinks the weight before the update.
/// Source: Loshchilov and Hutter 2019.
struct adamw {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;

  static constexpr optimizer_row row{
      .name = "adamw",
      .title = "AdamW",
      .hyperparameters =
          {{.name = "beta1", .range = hyperparameter_range::fraction, .rule = 235, .usual = "0.9 is usual"},
           {.name = "beta2",
            .range = hyperparameter_range::fraction,
            .rule = 235,
            .usual = "0.95 and 0.999 are usual"},
           {.name = "eps", .range = hyperparameter_range::divisor, .rule = 236, .usual = "1e-8 is usual"}},
      .moments = {{"first_moment", "AdamW's m"}, {"second_moment", "AdamW's v"}}};
  constexpr std::array<double, 3> numbers() const { return {beta1, beta2, eps}; }
};

/// SGD with momentum. The recipe's weight decay is added to the gradient.
/// Source: Sutskever et al. 2013.
struct sgd {
  double momentum = 0;
  bool nesterov = false;

  static constexpr optimizer_row row{
      .name = "sgd",
      .title = "SGD",
      .hyperparameters = {{.name = "momentum",
                           .range = hyperparameter_range::fraction,
                           .rule = 241,
                           .usual = "0.9 is usual",
                           .printed = "momentum"},
                          {.name = "nesterov",
                           .range = hyperparameter_range::flag,
                           .rule = 241,
                           .printed = "Nesterov",
                           .needs = "momentum",
                           .because = "nesterov looks ahead along sgd's momentum"}},
      .moments = {{"momentum", "SGD's"}},
      .moments_need = "momentum"};
  constexpr std::array<double, 2> numbers() const { return {momentum, nesterov ? 1.0 : 0.0}; }
};

inline constexpr const optimizer_row* optimizer_rows[]{&adamw::row, &sgd::row};

}  // namespace rankc
