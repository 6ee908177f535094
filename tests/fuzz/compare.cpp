// SPDX-License-Identifier: Apache-2.0
#include "compare.hpp"

#include "finite_differences.hpp"
#include "training_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fuzz {

namespace {

using rankc::runtime::region;

constexpr int first_steps = 2, steps = 4;
/// The tolerance for the gradients of the first step and the weights after two, and for later steps, in which
/// earlier differences have passed through the model.
constexpr double tolerance = 1e-10, later_tolerance = 1e-8;
/// The largest difference of a rounded loss from the ops' loss; the largest of 360 programs was 7.8e-2.
constexpr double rounding_tolerance = 0.1;
/// How many times the effect of one rounding a layout may differ: some models amplify small differences. The
/// effect is measured on the one-rank program with weights moved by one rounding.
constexpr double more_than_rounding = 30;

double largest(const tensors& all) {
  double m = 0;
  for (const auto& [name, values] : all)
    for (double v : values) m = std::max(m, std::abs(v));
  return m;
}

double apart(double a, double b, double floor) {
  const double d = std::abs(a - b) / std::max({std::abs(a), std::abs(b), floor});
  return std::isnan(d) ? HUGE_VAL : d;
}

/// Compare two sets of tensors element by element; `floor` is the smallest scale of an element.
void compare_all(figures& f, double& worst, const char* what, double within, const tensors& one,
                 const tensors& other, const auto& floor) {
  std::string wrong;
  for (const auto& [name, values] : one) {
    const auto found = other.find(name);
    if (found == other.end() || found->second.size() != values.size()) {
      f.wrong.push_back(fmt::format("{}: '{}' is not there, or of another size", what, name));
      continue;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double d = apart(values[i], found->second[i], floor(name, i));
      worst = std::max(worst, d);
      ++f.elements;
      if (d > within && wrong.empty())
        wrong = fmt::format("{}: {}[{}] is {:.17g}, with one rank {:.17g}", what, name, i, found->second[i],
                            values[i]);
    }
  }
  if (other.size() != one.size())
    f.wrong.push_back(fmt::format("{}: {} tensors, with one rank {}", what, other.size(), one.size()));
  if (!wrong.empty()) f.wrong.push_back(wrong);
}

/// The largest difference between two sets of tensors.
double drift(const tensors& one, const tensors& other, const auto& floor) {
  double worst = 0;
  for (const auto& [name, values] : one)
    for (std::size_t i = 0; i < values.size(); ++i)
      worst = std::max(worst, apart(values[i], other.at(name)[i], floor(name, i)));
  return worst;
}

/// Move every weight by a unit in the last place, up or down.
void nudge(training_run& r, draws d) {
  const tensors weights = r.read(region::weights);
  for (const auto& p : r.parameters()) {
    std::vector<double> values = weights.at(p.name);
    for (double& v : values) v = std::nextafter(v, d.chance(50) ? HUGE_VAL : -HUGE_VAL);
    r.write(p, values);
  }
}

void compare_loss(figures& f, const char* what, double found, double expected, double within = tolerance) {
  const double d = apart(found, expected, 1e-3);
  f.loss = std::max(f.loss, d);
  if (!(d <= within))
    f.wrong.push_back(fmt::format("{} is {:.17g}, with one rank {:.17g}", what, found, expected));
}

reference_result reference_of(const plan& p, const training_run& one) {
  const int vocab_used = p.model.vocab_used ? p.model.vocab_used : p.model.vocab;
  const batch first = batch_of(vocab_used, p.recipe.seq, p.recipe.global_batch, 0);
  return evaluate_reference(make(on_one_rank(p), "one"), one.read(region::weights), first);
}

/// Whether rounding errors stay below the tolerances: activations are neither huge nor NaN.
bool is_steady(const reference_result& r) { return std::isfinite(r.loss) && r.largest < 1e4; }

}  // namespace

figures check_one_rank(const plan& p, const program& one, int elements) {
  figures f;
  training_run r(one);
  const reference_result expected = reference_of(p, r);
  f.steady = is_steady(expected);
  if (!f.steady) return f;
  const double loss = r.evaluate();
  f.reference = apart(loss, expected.loss, 1e-3);
  if (!(f.reference <= (p.rounded ? rounding_tolerance : tolerance)))
    f.wrong.push_back(fmt::format("the loss is {:.17g}, that of the ops {:.17g}", loss, expected.loss));
  if (!one.about->trains || p.rounded)
    return f;  // a rounded loss is a step function, so its finite differences are meaningless

  training_run stepped(one);
  stepped.step();
  const tensors gradients = stepped.read(region::gradients);
  draws d(p.seed, p.index, "elements");
  const finite_result found = compare_differences(r, gradients, d, elements);
  f.differences = found.compared;
  f.finite = found.worst;
  if (!found.wrong.empty()) f.wrong.push_back(found.wrong);
  return f;
}

figures check_layout(const plan& p, const program& parallel, const program& one) {
  figures f;
  training_run a(one), b(parallel), nudged(one);
  f.steady = is_steady(reference_of(p, a));
  if (!f.steady) return f;
  compare_loss(f, "the loss of an evaluation", b.evaluate(), a.evaluate());
  if (p.schedule.inference || !b.about().trains) return f;
  tensors gradients;
  const auto& recipe = a.about().train;
  double scale = 0, clipped = 1, later = 0;
  // A sum whose terms cancel has its terms' rounding error; AdamW divides by it.
  // All gradients may be zero, also by finite differences: attention within documents of one token has
  // constant scores.
  const auto of_gradient = [&](const std::string&, std::size_t) { return 1e-3 * (scale > 0 ? scale : 1); };
  const auto of_weight = [&](const std::string& name, std::size_t i) {
    if (!gradients.count(name)) return recipe.lr * first_steps;  // frozen
    // An SGD step scales with the gradient.
    if (a.about().moments < 2) return recipe.lr * first_steps * std::max(1.0, scale * clipped);
    const double g = std::abs(gradients.at(name)[i]) * clipped, rounding = 1e-3 * tolerance * scale * clipped;
    return recipe.lr * first_steps * std::max(1.0, std::min(1.0, rounding / (g + recipe.eps)) / tolerance);
  };
  nudge(nudged, draws(p.seed, p.index, "roundings"));
  const auto allowed = [](double within, double rounding) {
    return std::max(within, more_than_rounding * rounding);
  };
  for (int n = 1; n <= steps; ++n) {
    const auto x = a.step(), y = b.step(), z = nudged.step();
    compare_loss(f, "the loss of a step", y.loss, x.loss,
                 n == 1 ? tolerance : allowed(later_tolerance, apart(z.loss, x.loss, 1e-3)));
    compare_loss(f, "the gradient norm", y.grad_norm, x.grad_norm,
                 n == 1 ? tolerance : allowed(later_tolerance, apart(z.grad_norm, x.grad_norm, 1e-3)));
    if (n == 1) {
      gradients = a.read(region::gradients);
      scale = largest(gradients);
      if (recipe.clip > 0) clipped = std::min(1.0, recipe.clip / x.grad_norm);
      compare_all(f, f.gradients, "gradient",
                  allowed(tolerance, drift(gradients, nudged.read(region::gradients), of_gradient)),
                  gradients, b.read(region::gradients), of_gradient);
    }
    if (n != first_steps && n != steps) continue;
    const tensors weights = a.read(region::weights);
    compare_all(f, n == steps ? later : f.weights, "weight",
                allowed(n == steps ? later_tolerance : tolerance,
                        drift(weights, nudged.read(region::weights), of_weight)),
                weights, b.read(region::weights), of_weight);
  }
  if (const std::string name = b.unequal_copies(); !name.empty())
    f.wrong.push_back("the holders of '" + name + "' differ");
  return f;
}

}  // namespace fuzz
