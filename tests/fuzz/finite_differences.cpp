// SPDX-License-Identifier: Apache-2.0
#include "finite_differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace fuzz {

namespace {

constexpr double of_differences = 1e-6;  // relative to the tensor's largest gradient
constexpr double rounding = 1e-10;       // absolute: the effect of the loss' rounding on a difference

/// The derivative of f at 0, to fourth order in h, and its error from rounding. `jumps`: f is not smooth
/// within the step, as where a router takes another expert.
struct slope {
  double value = 0, rounding = 0;
  bool jumps = false;
};
slope differentiate(const auto& f, double h) {
  const double near = f(h), inner = near - f(-h), outer = f(2 * h) - f(-2 * h);
  return {(8 * inner - outer) / (12 * h), 8 * DBL_EPSILON * std::abs(near) / h,
          std::abs(outer - 2 * inner) > std::abs(inner) / 2};
}

class comparison {
 public:
  comparison(training_run& r, finite_result& out) : run_(r), out_(out) {}

  /// Compare with differences of several step lengths; one must agree. Long steps have truncation errors, and
  /// short ones rounding errors, which are allowed only if longer steps jump.
  void compare(const auto& f, double gradient, double scale, const std::string& what) {
    double best = HUGE_VAL;
    bool jumps = false;
    std::string all;
    for (const double h : {1e-3, 2e-4, 5e-3, 4e-5, 8e-6, 2e-6, 5e-7, 1e-7}) {
      const slope found = differentiate(f, h);
      const double rounded = jumps ? std::max(0.0, found.rounding - rounding) : 0,
                   off = std::abs(found.value - gradient) - rounded;
      jumps |= found.jumps;
      best = std::min(best, std::isnan(off) ? HUGE_VAL : off);
      all += fmt::format(" {:.12g} (step {:.0e})", found.value, h);
      if (off <= of_differences * scale + rounding) break;
    }
    ++out_.compared;
    const double d = std::max(0.0, best - rounding) / std::max(scale, 1e-9);
    out_.worst = std::max(out_.worst, std::isnan(d) ? HUGE_VAL : d);
    if (!(best <= of_differences * scale + rounding) && out_.wrong.empty())
      out_.wrong = fmt::format("the gradient of {} is {:.12g}, by finite differences{}", what, gradient, all);
  }

  void compare_element(const rankc::runtime::global_parameter& p, const std::vector<double>& at,
                       const std::vector<double>& gradient, std::size_t i, double scale) {
    compare(
        [&](double h) {
          run_.write(p, i, at[i] + h);
          return run_.evaluate();
        },
        gradient[i], scale, fmt::format("{}[{}]", p.name, i));
    run_.write(p, i, at[i]);
  }

  void compare_direction(const rankc::runtime::global_parameter& p, const std::vector<double>& at,
                         const std::vector<double>& gradient, draws& d, double scale) {
    std::vector<double> direction(at.size()), moved(at.size());
    double along = 0;
    for (std::size_t i = 0; i < at.size(); ++i) {
      direction[i] = d.chance(50) ? 1 : -1;
      along += direction[i] * gradient[i];
    }
    const auto loss = [&](double h) {
      for (std::size_t i = 0; i < at.size(); ++i) moved[i] = at[i] + h * direction[i];
      run_.write(p, moved);
      return run_.evaluate();
    };
    compare(loss, along, scale * std::sqrt(static_cast<double>(at.size())),
            fmt::format("{} in a random direction", p.name));
    run_.write(p, at);
  }

 private:
  training_run& run_;
  finite_result& out_;
};

}  // namespace

finite_result compare_differences(training_run& r, const tensors& gradients, draws& d, int elements) {
  finite_result out;
  comparison c(r, out);
  const tensors weights = r.read(rankc::runtime::region::weights);
  std::size_t all = 0;
  for (const auto& [name, g] : gradients) all += g.size();
  for (const auto& p : r.parameters()) {
    if (!p.trained) continue;
    const std::vector<double>&at = weights.at(p.name), &gradient = gradients.at(p.name);
    double scale = 0;
    for (double g : gradient) scale = std::max(scale, std::abs(g));
    c.compare_direction(p, at, gradient, d, scale);
    const std::size_t share = all <= static_cast<std::size_t>(elements)
                                  ? at.size()
                                  : 1 + at.size() * static_cast<std::size_t>(elements) / all;
    for (std::size_t n = 0; n < std::min(share, at.size()); ++n)
      c.compare_element(
          p, at, gradient,
          share >= at.size() ? n : static_cast<std::size_t>(d.below(static_cast<int>(at.size()))), scale);
  }
  return out;
}

}  // namespace fuzz
