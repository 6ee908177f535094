// SPDX-License-Identifier: Apache-2.0
// The operands that a result depends on, and those in which it is linear.
#include "laws.hpp"

#include <doctest/doctest.h>

#include <algorithm>

namespace rankc::test::rows {

namespace {

std::string named(const row& r, const equation& e, std::size_t operand) {
  return std::string(r.op->name) + " " + r.is->names[static_cast<std::size_t>(e.results[0])] + " " +
         r.is->ports[operand].name;
}

values combined(double a, const values& x, double b, const values& y) {
  values made(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) made[i] = a * x[i] + b * y[i];
  return made;
}

constexpr double left = 0.75, right = -1.5;

/// The distance of f(a x + b y) from a f(x) + b f(y), for an equation's result in one or more operands.
double nonlinearity(machine& on, const row& r, const setting& s, const equation& e,
                    const std::vector<std::size_t>& in) {
  const std::size_t result = static_cast<std::size_t>(e.results[0]);
  operands x = random_operands(on, r, s, 3), y = x, both = x;
  for (const std::size_t p : in) {
    y[p] = random_port(on, r, p, s, 4);
    both[p] = on.rounded(r, p, combined(left, x[p], right, y[p]));
  }
  const values of_x = on.run(r, s, x)[result], of_y = on.run(r, s, y)[result];
  return deviation(on.run(r, s, both)[result], combined(left, of_x, right, of_y),
                   std::max(largest(of_x), 2 * largest(of_y)));
}

/// Whether a result changes with an operand.
bool depends(machine& on, const row& r, const setting& s, const equation& e, std::size_t operand) {
  const std::size_t result = static_cast<std::size_t>(e.results[0]);
  operands o = random_operands(on, r, s, 5);
  const values before = on.run(r, s, o)[result];
  o[operand] = random_port(on, r, operand, s, 6);
  return on.run(r, s, o)[result] != before;
}

bool names(const equation& e, std::size_t operand) {
  return std::find(e.operands.begin(), e.operands.end(), static_cast<int>(operand)) != e.operands.end();
}

/// Visit each operand of each equation.
template <class F>
void each_operand(const row& r, F f) {
  for (const equation& e : r.is->equations)
    if (e.is != equation::kind::call && e.is != equation::kind::zero)
      for (std::size_t i = 0; i < e.operands.size(); ++i)
        f(e, static_cast<std::size_t>(e.operands[i]), bool{e.linear[i]});
}

/// The index of the operand's element that is added to element (i, j) of a result; -1 if none is. `before`:
/// columns of the operands before it, if parts are concatenated.
std::ptrdiff_t added(const row& r, const setting& s, std::size_t result, std::size_t operand, std::size_t i,
                     int j, int before) {
  const std::vector<extent> to = shape(r, result, s), from = shape(r, operand, s);
  const extent &wide = to.back(), &own = from.back();
  const int unit = wide.unit_letter ? wide.unit : wide.elements(),
            own_unit = own.unit_letter ? own.unit : own.elements();
  const int within = j % unit - (own_unit < unit || before < 0 ? before : 0);
  if (within < 0 || within >= own_unit) return -1;
  int row_of = 0;
  if (from.size() > 1)
    row_of = from[0].letter == 's' ? (s.first + static_cast<int>(i)) % s.seq() : static_cast<int>(i);
  return static_cast<std::ptrdiff_t>(row_of) * own.elements() + j / unit * own_unit + within;
}

values sum_of(const row& r, const setting& s, const equation& e, const operands& o) {
  const std::size_t result = static_cast<std::size_t>(e.results[0]);
  values made(count(r, result, s), 0.0);
  const int columns = shape(r, result, s).back().elements();
  // A pushed layer is at the end.
  int before = r.op == &ops::push ? -shape(r, 2, s).back().elements() : 0;
  for (const int p : e.operands) {
    const std::size_t operand = static_cast<std::size_t>(p);
    for (std::size_t n = 0; n < made.size(); ++n) {
      const auto columns_of = static_cast<std::size_t>(columns);
      const std::ptrdiff_t at =
          added(r, s, result, operand, n / columns_of, static_cast<int>(n % columns_of), before);
      if (at >= 0) made[n] += o[operand][static_cast<std::size_t>(at)];
    }
    const extent own = shape(r, operand, s).back();
    before += own.unit_letter ? own.unit : own.elements();
  }
  return made;
}

}  // namespace

void check_operands(machine& on, const row& r, const setting& s) {
  each_operand(r, [&](const equation& e, std::size_t operand, bool is_linear) {
    if (!is_linear && e.is == equation::kind::function) return;
    std::vector<std::size_t> in{operand};
    if (e.is == equation::kind::sum)
      in.assign(e.operands.begin(), e.operands.end());  // linear in all operands at once
    INFO(on.name() << " is not linear: " << named(r, e, operand));
    CHECK(nonlinearity(on, r, s, e, in) <= on.tolerance());
  });
  for (const equation& e : r.is->equations)
    for (std::size_t p = r.results(); e.is != equation::kind::call && p < r.ports.size(); ++p) {
      INFO(on.name() << " depends on what its equation leaves out: " << named(r, e, p));
      CHECK((names(e, p) || !depends(on, r, s, e, p)));
    }
}

std::set<std::string> unmarked_and_linear(machine& on, const row& r, const setting& s) {
  std::set<std::string> found;
  each_operand(r, [&](const equation& e, std::size_t operand, bool is_linear) {
    if (is_linear || e.is != equation::kind::function || e.how != codegen::algebra::joining::sum ||
        r.of(operand).holds == element::index)
      return;
    if (nonlinearity(on, r, s, e, {operand}) <= 1e-3) found.insert(named(r, e, operand));
  });
  return found;
}

std::set<std::string> named_and_unused(machine& on, const row& r, const setting& s) {
  std::set<std::string> found;
  each_operand(r, [&](const equation& e, std::size_t operand, bool) {
    if (!depends(on, r, s, e, operand)) found.insert(named(r, e, operand));
  });
  return found;
}

void check_values(machine& on, const row& r, const setting& s) {
  const operands o = random_operands(on, r, s, 7);
  for (const equation& e : r.is->equations) {
    if (e.is == equation::kind::function || e.is == equation::kind::call) continue;
    const std::size_t result = static_cast<std::size_t>(e.results[0]);
    values want = e.is == equation::kind::zero ? values(count(r, result, s), 0.0) : sum_of(r, s, e, o);
    if (e.is == equation::kind::multiple && r.is->number)
      for (double& x : want) x *= s.number;
    INFO(on.name() << " " << r.op->name << " is no sum, multiple or zero");
    CHECK(deviation(on.run(r, s, o)[result], want) <= on.tolerance());
  }
  if (!r.is->commutative) return;
  operands turned = o;
  std::swap(turned[r.results()], turned[r.results() + 1]);
  INFO(on.name() << " " << r.op->name << " does not commute");
  CHECK(on.run(r, s, turned)[0] == on.run(r, s, o)[0]);
}

}  // namespace rankc::test::rows
