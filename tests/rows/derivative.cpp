// SPDX-License-Identifier: Apache-2.0
// The derivative column: central differences of a row's kernel against the rows that it names.
#include "definition.hpp"

#include <rankc/contract/masked_logit.hpp>

#include <doctest/doctest.h>

#include <algorithm>

namespace rankc::test::rows {

namespace {

using codegen::algebra::derivative;

/// The results of a row's kernel, or of the rows that define it.
operands results_of(machine& on, const row& r, const setting& s, const operands& o) {
  return on.has(r) ? on.run(r, s, o) : by_definition(on, r, s, o);
}

/// The sum of all results' elements, each times its gradient, without those that are masked.
double weighed(machine& on, const row& r, const setting& s, const operands& o, const operands& gradients) {
  const operands made = results_of(on, r, s, o);
  double sum = 0;
  for (std::size_t p = 0; p < r.results(); ++p)
    for (std::size_t i = 0; i < gradients[p].size(); ++i)
      if (made[p][i] != masked_logit) sum += gradients[p][i] * made[p][i];
  return sum;
}

values differences(machine& on, const row& r, const setting& s, operands o, std::size_t operand,
                   const operands& gradients) {
  constexpr double h = 1e-3;
  values made(o[operand].size());
  for (std::size_t i = 0; i < made.size(); ++i) {
    const double middle = o[operand][i];
    const auto moved = [&](double by) {
      o[operand][i] = middle + by;
      return weighed(on, r, s, o, gradients);
    };
    const auto by = [&](int steps) { return moved(steps * h) - moved(-steps * h); };
    made[i] = (45 * by(1) - 9 * by(2) + by(3)) / (60 * h);  // central differences of sixth order
    o[operand][i] = middle;
  }
  return made;
}

/// The result of a row's derivative, from the row's ports and the gradients of its results.
operands derived(machine& on, const row& r, const setting& s, const derivative& d, const operands& ports,
                 const operands& gradients) {
  const auto of = [&](const codegen::algebra::factor& f) {
    return f.gradient ? gradients[static_cast<std::size_t>(f.port)] : ports[static_cast<std::size_t>(f.port)];
  };
  if (d.row < 0) return {of(d.from[0])};
  const row& g = find_row(codegen::algebra::facts()[static_cast<std::size_t>(d.row)].row);
  std::vector<std::vector<extent>> shapes;
  for (const int port : d.of) shapes.push_back(shape(r, static_cast<std::size_t>(port), s));
  operands o(d.of.size());
  for (const auto& f : d.from) {
    shapes.push_back(shape(r, static_cast<std::size_t>(f.port), s));
    o.push_back(of(f));
  }
  std::vector<const std::vector<extent>*> all;
  for (const auto& one : shapes) all.push_back(&one);
  return on.run(g, setting_for(g, s, all), o);
}

}  // namespace

void check_derivative(machine& on, const row& r, const setting& s) {
  // The error of sixth-order differences for numbers near 1.
  constexpr double tolerance = 2e-10;
  operands o = random_operands(on, r, s, 9);
  const operands made = results_of(on, r, s, o);
  std::copy_n(made.begin(), r.results(), o.begin());
  operands gradients(r.results());
  bool uses_any = false;
  for (const derivative& d : r.is->derivatives)
    for (const auto& f : d.from)
      if (f.gradient) {
        gradients[static_cast<std::size_t>(f.port)] =
            random_port(on, r, static_cast<std::size_t>(f.port), s, 10);
        uses_any = true;
      }
  if (!uses_any) gradients[0] = {1.0};  // the result is the loss
  for (const derivative& d : r.is->derivatives) {
    // A count of choices takes the place of a gradient.
    if (d.row >= 0 &&
        codegen::algebra::facts()[static_cast<std::size_t>(d.row)].row == ops::count_choices.name)
      continue;
    const operands got = derived(on, r, s, d, o, gradients);
    for (std::size_t i = 0; i < d.of.size(); ++i) {
      const auto operand = static_cast<std::size_t>(d.of[i]);
      INFO(r.op->name << ": the derivative of " << r.is->ports[operand].name);
      CHECK(deviation(got[i], differences(on, r, s, o, operand, gradients)) <= tolerance);
    }
  }
}

}  // namespace rankc::test::rows
