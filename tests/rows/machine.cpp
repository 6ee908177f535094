// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace rankc::test::rows {

values random_port(const machine& on, const row& r, std::size_t port, const setting& s, unsigned seed) {
  std::mt19937 generator(seed * 97u + static_cast<unsigned>(port));
  values v(count(r, port, s));
  const auto below = static_cast<unsigned>(s.first + s.size.at('v') + 3);
  const bool positive = r.is->ports[port].name == "sums";
  for (double& x : v) {
    const double unit = static_cast<double>(generator()) / 4294967296.0;  // [0, 1)
    x = r.of(port).holds == element::index ? static_cast<double>(generator() % below)
        : positive                         ? 0.5 + unit
                                           : 2 * unit - 1;
  }
  return on.rounded(r, port, v);
}

operands random_operands(const machine& on, const row& r, const setting& s, unsigned seed) {
  operands made;
  for (std::size_t p = 0; p < r.ports.size(); ++p) made.push_back(random_port(on, r, p, s, seed));
  return made;
}

double largest(const values& v) {
  double most = 0;
  for (const double x : v) most = std::max(most, std::abs(x));
  return most;
}

double deviation(const values& got, const values& want, double scale) {
  if (got.size() != want.size()) return std::numeric_limits<double>::infinity();
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double off = std::abs(got[i] - want[i]);
    most = off <= most ? most : off;  // NaN stays
    if (std::isnan(off)) return std::numeric_limits<double>::infinity();
  }
  return most / std::max({1.0, scale, largest(want)});
}

}  // namespace rankc::test::rows
