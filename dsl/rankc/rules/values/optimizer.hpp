// SPDX-License-Identifier: Apache-2.0
// RC235, RC236, RC241, RC265: the hyperparameters of an optimizer, each in the range that its row gives.
// RC264: the optimizer updates each element separately.
#pragma once
#include <rankc/base/diagnostic.hpp>
#include <rankc/recipe/training.hpp>

#include <limits>

namespace rankc {

namespace detail {

/// True if x is at least `lowest` and finite in the precision of a step; false for NaN.
constexpr bool is_from(double lowest, double x, precision p) {
  const double largest = p == f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  return x >= lowest && x <= largest;
}
/// The smallest legal eps. It is above the smallest normal number, because a smaller one may be rounded to 0.
constexpr double smallest_eps(precision p) { return p == f64 ? 2.3e-308 : 1.2e-38; }

/// The name of the dtype of weights and moments.
constexpr std::string_view widest(precision p) { return p == f64 ? "f64" : "f32"; }

constexpr bool is_in_range(hyperparameter_range range, double x, precision p) {
  if (range == hyperparameter_range::fraction) return x >= 0 && x < 1;
  if (range == hyperparameter_range::non_negative) return is_from(0, x, p);
  return range == hyperparameter_range::flag || is_from(smallest_eps(p), x, p);
}

constexpr void check_hyperparameter(report& out, const optimizer& o, const hyperparameter& h, precision p) {
  const double x = o.number(h.name);
  if (!is_in_range(h.range, x, p)) {
    sentence& t = refuse(out, h.rule) << h.name << "=" << x;
    if (h.range == hyperparameter_range::fraction) t << "; it is at least 0 and less than 1: " << h.usual;
    else if (h.range == hyperparameter_range::non_negative) t << "; it is at least 0 and finite: " << h.usual;
    else
      t << "; it divides, so in " << widest(p) << " it is at least " << smallest_eps(p)
        << ", and finite: " << h.usual;
  }
  if (x != 0 && !h.needs.empty() && o.number(h.needs) == 0)
    refuse(out, h.rule) << h.because << ", and " << h.needs << "=0; take " << h.needs << "=0.9, or leave "
                        << h.name << " out";
}

}  // namespace detail

/// Appends the faults of an optimizer in a recipe of this precision.
/// Errors: RC235, RC236, RC241, RC264, RC265.
constexpr void check_optimizer(report& out, const optimizer& o, precision p) {
  for (const hyperparameter& h : o.row->used_hyperparameters()) detail::check_hyperparameter(out, o, h, p);
  if (o.row->granularity == granularity::matrix)
    refuse(out, 264) << "optimizer " << o.row->name
                     << " updates whole matrices, and STEP updates the elements of a rank's shards and "
                        "gathers no matrix; take an optimizer by element, as adamw{}";
}

}  // namespace rankc
