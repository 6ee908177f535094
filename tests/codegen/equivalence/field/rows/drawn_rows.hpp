// SPDX-License-Identifier: Apache-2.0
// Drawn operands, and a row that runs on them, for the tests of rows.
#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "rows.hpp"

namespace field {

inline matrix drawn(extent e, std::uint64_t key) {
  matrix m(e);
  for (std::size_t i = 0; i < m.of.size(); ++i) m.of[i] = draw(mix(key, i));
  return m;
}
inline matrix drawn(extent e, std::string_view name) { return drawn(e, key_of(name)); }

inline matrix rows_of(const matrix& m, std::int64_t first, std::int64_t count) {
  matrix out(extent{count, m.is.cols, m.is.unit});
  std::copy_n(m.row(first), count * m.is.cols, out.row(0));
  return out;
}

inline matrix sum(const matrix& a, const matrix& b) {
  matrix out = a;
  std::transform(a.of.begin(), a.of.end(), b.of.begin(), out.of.begin(), add);
  return out;
}

inline element inner(const matrix& a, const matrix& b) {
  element total = 0;
  for (std::size_t i = 0; i < a.of.size(); ++i) total = add(total, multiply(a.of[i], b.of[i]));
  return total;
}

struct given_operand {
  std::string_view port;
  const matrix* is;
};
/// Runs a row on operands; `made` has the sizes of its results, `number` its attribute.
inline call run_row(std::string_view name, std::initializer_list<given_operand> given,
                    std::initializer_list<std::pair<std::string_view, extent>> made, double number) {
  call c;
  c.number = number;
  for (const given_operand& o : given) c.give(o.port, *o.is);
  for (const auto& [port, e] : made) c.want(port, e);
  run(find_row(name), c);
  return c;
}

}  // namespace field
