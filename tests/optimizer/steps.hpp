// SPDX-License-Identifier: Apache-2.0
// A step by the optimizer's formulas, computed in f64 from the weights, moments and gradients that an engine
// shows before it.
#pragma once
#include <doctest/doctest.h>

#include <cmath>

#include "run.hpp"

namespace optimizing {

using rankc::runtime::region;

/// An element of a parameter and its moments, before or after a step.
struct element {
  double weight, first, second;
};

/// One element after a step of torch.optim.SGD, AdamW or Adagrad, by their documentation, or of Lion, by
/// algorithm 2 of its paper.
inline element expected(const registered& program, element e, double gradient, double norm, bool matrix,
                        double lr, int step) {
  const rankc::runtime::description& about = *program.about;
  const rankc::runtime::recipe& r = about.train;
  if (r.clip > 0) gradient *= std::min(1.0, r.clip / (norm + 1e-6));
  const double decay = matrix ? r.weight_decay : 0;
  if (program.job == "lion") {
    const double mean = r.beta1 * e.first + (1 - r.beta1) * gradient;
    const double sign = mean == 0 ? 0 : std::copysign(1.0, mean);
    return {e.weight - lr * (sign + decay * e.weight), r.beta2 * e.first + (1 - r.beta2) * gradient, 0};
  }
  if (program.job == "adagrad") {  // with lr_decay 0.25 and eps 1e-6
    const double by = gradient + decay * e.weight, squares = e.first + by * by;
    return {e.weight - lr / (1 + 0.25 * (step - 1)) * by / (std::sqrt(squares) + 1e-6), squares, 0};
  }
  if (about.moments == 2) {
    e.weight -= lr * decay * e.weight;
    e.first = r.beta1 * e.first + (1 - r.beta1) * gradient;
    e.second = r.beta2 * e.second + (1 - r.beta2) * gradient * gradient;
    const double m = e.first / (1 - std::pow(r.beta1, step)), v = e.second / (1 - std::pow(r.beta2, step));
    e.weight -= lr * m / (std::sqrt(v) + r.eps);
    return e;
  }
  double by = gradient + decay * e.weight;
  if (r.momentum != 0) {
    e.first = r.momentum * e.first + by;
    by = r.nesterov ? by + r.momentum * e.first : e.first;
  }
  e.weight -= lr * by;
  return e;
}

/// Check a stored number against the exact one, computed from terms as large as `size`, each within `error`.
/// In bf16 it must be a neighbour of the exact one, or the nearest.
inline void check_kept(double kept, double exact, double size, rankc::runtime::dtype as, bool nearest,
                       double error) {
  if (as != rankc::runtime::dtype::bf16) {
    CHECK(std::abs(kept - exact) <= error * std::max(1.0, std::abs(exact)));
    return;
  }
  int exponent = 0;
  std::frexp(exact, &exponent);
  exponent = std::max(exponent, -125);  // subnormal bf16 numbers have a constant distance
  const double unit = std::ldexp(1.0, exponent - 8);
  CHECK(std::abs(kept - exact) <= (nearest ? 0.5 : 1.0) * unit + error * std::max(size, std::abs(exact)));
  CHECK(kept == std::ldexp(std::round(std::ldexp(kept, 8 - exponent)), exponent - 8));  // a bf16 number
}

struct state {
  tensors weights, first, second;
  explicit state(run& r) : weights(r.tensors(region::weights)) {
    if (r.about.moments > 0) first = r.tensors(region::first_moment);
    if (r.about.moments > 1) second = r.tensors(region::second_moment);
  }
  element at(const std::string& name, std::size_t i) const {
    const auto of = [&](const tensors& t) { return t.empty() ? 0 : t.at(name)[i]; };
    return {weights.at(name)[i], of(first), of(second)};
  }
};

/// Take some steps and check each. Returns: the number of compared elements.
inline std::size_t check_steps(const registered& program, int steps, double error) {
  const double lr = 0.01;
  run r(program, "arith", lr);
  const bool nearest = program.job == "adamw_bf16";
  std::size_t elements = 0;
  for (int step = 1; step <= steps; ++step) {
    const state before(r);
    const double norm = r.step().grad_norm;
    const tensors gradients = r.tensors(region::gradients);
    const state after(r);
    for (const auto& p : rankc::runtime::global_parameters(r.about)) {
      CAPTURE(p.name);
      for (std::size_t i = 0; i < p.count(); ++i, ++elements) {
        const element want =
            expected(program, before.at(p.name, i), gradients.at(p.name)[i], norm, p.matrix, lr, step);
        const element got = after.at(p.name, i);
        const element old = before.at(p.name, i);
        const double gradient = std::abs(gradients.at(p.name)[i]);
        const auto moments = type_of(r.about, region::first_moment);
        check_kept(got.weight, want.weight, std::abs(old.weight), type_of(r.about, region::weights), nearest,
                   error);
        if (r.about.moments > 0)
          check_kept(got.first, want.first, std::max(std::abs(old.first), gradient), moments, nearest, error);
        if (r.about.moments > 1) check_kept(got.second, want.second, old.second, moments, nearest, error);
      }
    }
  }
  return elements;
}

}  // namespace optimizing
